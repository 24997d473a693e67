//! The matrix of an end-to-end test: which CLI versions, channels and doors it runs on. [`over!`](crate::over) defines
//! one test per combination. The default run takes a small set in which each value occurs, and each pair of values
//! where the gate is tested; the other combinations are slow tests (`cargo xtask test --slow`).

/// Defines tests of `async fn(World) -> anyhow::Result<()>`: one module per function, one test per combination.
///
/// ```ignore
/// over!(clis: a_test, another_test);
/// over!(channels, "idle_secs = 0.5": a_test_with_a_line_in_plexus_toml);
/// ```
///
/// | matrix | combinations | in the default run |
/// |---|---|---|
/// | `clis` | the oldest and the newest CLI, control channel | both |
/// | `versions` | all pinned CLIs, control channel | all |
/// | `channels` | both CLIs, control channel and relay | each CLI and each channel once |
/// | `mcp_channels` | both CLIs, relay and HTTP | each CLI and each channel once |
/// | `every_channel` | both CLIs, all three channels | each CLI and each channel |
/// | `everything` | both CLIs, all three channels, both doors | each pair of values |
#[macro_export]
macro_rules! over {
    (clis $($rest:tt)*) => {
        $crate::over!(@matrix [
            cli_197 "2.1.197" Control Rpc,
            cli_325 "2.1.325" Control Rpc,
        ] [] $($rest)*);
    };
    (versions $($rest:tt)*) => {
        $crate::over!(@matrix [
            cli_197 "2.1.197" Control Rpc,
            cli_263 "2.1.263" Control Rpc,
            cli_290 "2.1.290" Control Rpc,
            cli_325 "2.1.325" Control Rpc,
        ] [] $($rest)*);
    };
    (channels $($rest:tt)*) => {
        $crate::over!(@matrix [
            cli_197_relay "2.1.197" Relay Rpc,
            cli_325_control "2.1.325" Control Rpc,
        ] [
            cli_197_control "2.1.197" Control Rpc,
            cli_325_relay "2.1.325" Relay Rpc,
        ] $($rest)*);
    };
    (mcp_channels $($rest:tt)*) => {
        $crate::over!(@matrix [
            cli_197_http "2.1.197" Http Rpc,
            cli_325_relay "2.1.325" Relay Rpc,
        ] [
            cli_197_relay "2.1.197" Relay Rpc,
            cli_325_http "2.1.325" Http Rpc,
        ] $($rest)*);
    };
    (every_channel $($rest:tt)*) => {
        $crate::over!(@matrix [
            cli_197_relay "2.1.197" Relay Rpc,
            cli_325_control "2.1.325" Control Rpc,
            cli_325_http "2.1.325" Http Rpc,
        ] [
            cli_197_control "2.1.197" Control Rpc,
            cli_197_http "2.1.197" Http Rpc,
            cli_325_relay "2.1.325" Relay Rpc,
        ] $($rest)*);
    };
    (everything $($rest:tt)*) => {
        $crate::over!(@matrix [
            cli_197_control_rpc "2.1.197" Control Rpc,
            cli_197_relay_mcp "2.1.197" Relay Mcp,
            cli_197_http_rpc "2.1.197" Http Rpc,
            cli_325_control_mcp "2.1.325" Control Mcp,
            cli_325_relay_rpc "2.1.325" Relay Rpc,
            cli_325_http_mcp "2.1.325" Http Mcp,
        ] [
            cli_197_control_mcp "2.1.197" Control Mcp,
            cli_197_relay_rpc "2.1.197" Relay Rpc,
            cli_197_http_mcp "2.1.197" Http Mcp,
            cli_325_control_rpc "2.1.325" Control Rpc,
            cli_325_relay_mcp "2.1.325" Relay Mcp,
            cli_325_http_rpc "2.1.325" Http Rpc,
        ] $($rest)*);
    };
    (@matrix $fast:tt $slow:tt : $($name:ident),* $(,)?) => {
        $($crate::over!(@module $name "" $fast $slow);)*
    };
    (@matrix $fast:tt $slow:tt, $config:literal: $($name:ident),* $(,)?) => {
        $($crate::over!(@module $name $config $fast $slow);)*
    };
    (@module $name:ident $config:literal
        [$($fast:ident $fast_cli:literal $fast_channel:ident $fast_door:ident,)*]
        [$($slow:ident $slow_cli:literal $slow_channel:ident $slow_door:ident,)*]
    ) => {
        mod $name {
            $(
                #[tokio::test]
                async fn $fast() -> anyhow::Result<()> {
                    $crate::over!(@run $name $fast $config $fast_cli $fast_channel $fast_door)
                }
            )*
            $(
                #[tokio::test]
                #[ignore = "slow: one more combination of CLI, channel and door"]
                async fn $slow() -> anyhow::Result<()> {
                    $crate::over!(@run $name $slow $config $slow_cli $slow_channel $slow_door)
                }
            )*
        }
    };
    (@run $name:ident $test:ident $config:literal $cli:literal $channel:ident $door:ident) => {{
        let setup = $crate::Setup::cli($cli, $crate::Channel::$channel, $crate::DoorKind::$door);
        let test = concat!(module_path!(), "::", stringify!($test));
        match setup.with_config($config).world(test).await? {
            Some(world) => super::$name(world).await,
            None => Ok(()),
        }
    }};
}

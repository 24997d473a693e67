//! The matrix of an end-to-end test: which CLI versions, channels and doors it runs on. [`over!`](crate::over) defines
//! one test per combination. The default run takes a small set in which each value occurs, and each pair of values
//! where the gate is tested; the other combinations are slow tests (`cargo xtask test --slow`).

use plexus_testkit::PINNED;

/// The pinned version that a test is named after: `cli_197_relay` runs 2.1.197.
///
/// # Panics
/// If no pinned version has that number.
pub fn version_of(test: &str) -> &'static str {
    let number = test.split('_').nth(1).unwrap_or_default();
    let named = PINNED.iter().find(|version| version.rsplit('.').next() == Some(number));
    named.unwrap_or_else(|| panic!("no pinned version of Claude Code ends with the number in `{test}`"))
}

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
/// | `parents` | the oldest CLI, 2.1.263 and the newest CLI, control channel | all |
/// | `versions` | all pinned CLIs, control channel | all |
/// | `channels` | both CLIs, control channel and relay | each CLI and each channel once |
/// | `mcp_channels` | both CLIs, relay and HTTP | each CLI and each channel once |
/// | `every_channel` | both CLIs, all three channels | each CLI and each channel |
/// | `everything` | both CLIs, all three channels, both doors | each pair of values |
#[macro_export]
macro_rules! over {
    (clis $($rest:tt)*) => {
        $crate::over!(@matrix [
            cli_197 Control Rpc,
            cli_325 Control Rpc,
        ] [] $($rest)*);
    };
    (parents $($rest:tt)*) => {
        $crate::over!(@matrix [
            cli_197 Control Rpc,
            cli_263 Control Rpc,
            cli_325 Control Rpc,
        ] [] $($rest)*);
    };
    (versions $($rest:tt)*) => {
        $crate::over!(@matrix [
            cli_197 Control Rpc,
            cli_263 Control Rpc,
            cli_290 Control Rpc,
            cli_325 Control Rpc,
        ] [] $($rest)*);
    };
    (channels $($rest:tt)*) => {
        $crate::over!(@matrix [
            cli_197_relay Relay Rpc,
            cli_325_control Control Rpc,
        ] [
            cli_197_control Control Rpc,
            cli_325_relay Relay Rpc,
        ] $($rest)*);
    };
    (mcp_channels $($rest:tt)*) => {
        $crate::over!(@matrix [
            cli_197_http Http Rpc,
            cli_325_relay Relay Rpc,
        ] [
            cli_197_relay Relay Rpc,
            cli_325_http Http Rpc,
        ] $($rest)*);
    };
    (every_channel $($rest:tt)*) => {
        $crate::over!(@matrix [
            cli_197_relay Relay Rpc,
            cli_325_control Control Rpc,
            cli_325_http Http Rpc,
        ] [
            cli_197_control Control Rpc,
            cli_197_http Http Rpc,
            cli_325_relay Relay Rpc,
        ] $($rest)*);
    };
    (everything $($rest:tt)*) => {
        $crate::over!(@matrix [
            cli_197_control_rpc Control Rpc,
            cli_197_relay_mcp Relay Mcp,
            cli_197_http_rpc Http Rpc,
            cli_325_control_mcp Control Mcp,
            cli_325_relay_rpc Relay Rpc,
            cli_325_http_mcp Http Mcp,
        ] [
            cli_197_control_mcp Control Mcp,
            cli_197_relay_rpc Relay Rpc,
            cli_197_http_mcp Http Mcp,
            cli_325_control_rpc Control Rpc,
            cli_325_relay_mcp Relay Mcp,
            cli_325_http_rpc Http Rpc,
        ] $($rest)*);
    };
    (@matrix $fast:tt $slow:tt : $($name:ident),* $(,)?) => {
        $($crate::over!(@module $name "" $fast $slow);)*
    };
    (@matrix $fast:tt $slow:tt, $config:literal: $($name:ident),* $(,)?) => {
        $($crate::over!(@module $name $config $fast $slow);)*
    };
    (@module $name:ident $config:literal
        [$($fast:ident $fast_channel:ident $fast_door:ident,)*]
        [$($slow:ident $slow_channel:ident $slow_door:ident,)*]
    ) => {
        mod $name {
            $(
                #[tokio::test]
                async fn $fast() -> anyhow::Result<()> {
                    $crate::over!(@run $name $fast $config $fast_channel $fast_door)
                }
            )*
            $(
                #[tokio::test]
                #[ignore = "slow: one more combination of CLI, channel and door"]
                async fn $slow() -> anyhow::Result<()> {
                    $crate::over!(@run $name $slow $config $slow_channel $slow_door)
                }
            )*
        }
    };
    (@run $name:ident $test:ident $config:literal $channel:ident $door:ident) => {{
        let version = $crate::matrix::version_of(stringify!($test));
        let setup = $crate::Setup::cli(version, $crate::Channel::$channel, $crate::DoorKind::$door);
        let test = concat!(module_path!(), "::", stringify!($test));
        match setup.with_config($config).world(test).await? {
            Some(world) => super::$name(world).await,
            None => Ok(()),
        }
    }};
}

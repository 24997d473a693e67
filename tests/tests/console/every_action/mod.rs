//! Every action of the console, by keyboard alone on a wide screen and by touch on a phone. A table of a module lists the actions of one
//! part of the page, and each action is done by both hands with the same code (`tests/browser/hands.mjs`). The keyboard reaches every
//! element with Tab. By touch, the page must not be wider than the screen before or after any step.

mod answers;
mod audit;
mod review;
mod sessions;

use plexus_e2e::Setup;
use plexus_e2e::browser::Look;
use serde_json::{Value, json};

use crate::console::signed_in_page::ConsolePage;

/// Declares two tests of an `async fn(&Hand) -> anyhow::Result<()>`: one for each hand.
macro_rules! by_each_hand {
    ($($name:ident),* $(,)?) => {$(
        mod $name {
            use plexus_e2e::browser::Look;
            #[tokio::test]
            async fn keyboard() -> anyhow::Result<()> {
                let test = concat!(stringify!($name), "::keyboard");
                $crate::console::every_action::with_hand("keyboard", Look::WIDE, test, super::$name).await
            }
            #[tokio::test]
            async fn touch() -> anyhow::Result<()> {
                let test = concat!(stringify!($name), "::touch");
                $crate::console::every_action::with_hand("touch", Look::PHONE, test, super::$name).await
            }
        }
    )*};
}
use by_each_hand;

/// A person with one way to use the page.
struct Hand {
    name: &'static str,
    console: ConsolePage,
}

async fn with_hand(
    name: &'static str,
    look: Look,
    test: &str,
    does: impl AsyncFnOnce(&Hand) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let Some(world) = Setup::scripted().with_config("durability = \"normal\"").world(test).await? else {
        return Ok(());
    };
    let Some(console) = ConsolePage::open(world, test, look).await? else { return Ok(()) };
    let hand = Hand { name, console };
    // A click by a mouse would prove nothing about the keyboard.
    let refuse = "if (args === 'keyboard') await page.evaluate(() => addEventListener('pointerdown', () => { throw new Error('a pointer was used'); }, {capture: true}))";
    hand.console.run(refuse, json!(name)).await?;
    does(&hand).await?;
    hand.console.window.close().await
}

/// The verbs of a hand, and short names for what the actions use.
const SCOPE: &str = "const { press, fill, choose, check } = hands[args.hand](page); const { given } = args; \
    const dialog = page.getByRole('dialog'); \
    const button = (name, within = page) => within.getByRole('button', {name, exact: true}).locator('visible=true').first(); \
    const link = (name, within = page) => within.getByRole('link', {name, exact: true}).locator('visible=true').first(); \
    const field = (name, within = page) => within.getByLabel(name, {exact: true}).locator('visible=true').first(); \
    const closed = () => dialog.waitFor({state: 'detached'}); \
    const view = (name) => press(page.getByRole('navigation', {name: 'Views'}).getByRole('link', {name})); \
    const menu = async (name) => { await press(button('More actions')); await press(page.getByRole('menuitem', {name, exact: true})); };";

impl Hand {
    /// Does something. `given` is in the scope of the code.
    async fn does(&self, code: &str, given: Value) -> anyhow::Result<Value> {
        self.console.run(&format!("{SCOPE} {code}"), json!({"hand": self.name, "given": given})).await
    }
}

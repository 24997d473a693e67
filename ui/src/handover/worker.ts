/**
 * The service worker of the console. It holds the token of a tab in memory while that tab is reloaded, because every storage that a page
 * has is written to disk. It handles no requests: pages talk to it by messages only, and the browser lets only pages of this origin do so.
 */

import { HeldCredentials, HELD_FOR, type Credential } from './heldCredentials';
import { needsProof, provenKey } from './identity';

/** A message of a page. */
export type Message = { keep: Credential; tab: string } | { take: true; tab: string };

interface ExtendableMessage extends MessageEvent<Message> {
  waitUntil(done: Promise<unknown>): void;
}

const held = new HeldCredentials();

/** The credential, if its hub is there. */
async function proven(credential: Credential | null): Promise<Credential | null> {
  if (credential === null || !needsProof()) return credential;
  return credential.hub !== null && (await provenKey(credential.hub)) !== null ? credential : null;
}

self.addEventListener('message', (event) => {
  const message = event as ExtendableMessage;
  const { data, ports } = message;
  if ('keep' in data) {
    held.keep(data.tab, data.keep);
    // The browser stops a worker that has nothing to do, and what it held is lost with it.
    const forgotten = new Promise<void>((resolve) => setTimeout(resolve, HELD_FOR)).then(() => held.forgetOld());
    message.waitUntil(forgotten);
  } else if ('take' in data) {
    // The page that asks may be one that another program served from the hub's port.
    message.waitUntil(proven(held.take(data.tab)).then((credential) => ports[0]?.postMessage(credential)));
  }
});

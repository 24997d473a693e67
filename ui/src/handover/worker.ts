/**
 * The service worker of the console. It keeps the token of a tab in memory while the tab reloads, because browsers write every page storage
 * to disk. It handles no requests. Pages send it messages, and the browser delivers only those of this origin.
 */

import { HeldCredentials, HELD_FOR, type Credential } from './heldCredentials';
import { needsProof, provenKey } from './identity';

/** A message from a page. */
export type Message = { keep: Credential; tab: string } | { take: true; tab: string };

interface ExtendableMessage extends MessageEvent<Message> {
  waitUntil(done: Promise<unknown>): void;
}

const held = new HeldCredentials();

/** The credential, if its hub proves its identity. */
async function proven(credential: Credential | null): Promise<Credential | null> {
  if (credential === null || !needsProof()) return credential;
  return credential.hub !== null && (await provenKey(credential.hub)) !== null ? credential : null;
}

self.addEventListener('message', (event) => {
  const message = event as ExtendableMessage;
  const { data, ports } = message;
  if ('keep' in data) {
    held.keep(data.tab, data.keep);
    // The browser stops an idle worker, and its memory is lost.
    const forgotten = new Promise<void>((resolve) => setTimeout(resolve, HELD_FOR)).then(() => held.forgetOld());
    message.waitUntil(forgotten);
  } else if ('take' in data) {
    // The page may have been served by another program on the hub's port.
    message.waitUntil(proven(held.take(data.tab)).then((credential) => ports[0]?.postMessage(credential)));
  }
});

/**
 * Keeps the credential of this tab during a reload. The page hands it to the service worker when it unloads and asks for it when it
 * loads again. sessionStorage holds a random number of the tab, which is useless without the worker.
 */

import type { Credential } from '../handover/heldCredentials';
import { hex } from '../handover/identity';
import type { Message } from '../handover/worker';
import WORKER from '../handover/worker?worker&url';

const TAB = 'plexus-tab';
/** How long to wait for the browser to start the worker, in milliseconds. */
const PATIENCE = 3_000;

interface WorkerPolicy {
  createScriptURL(url: string): string;
}

interface TrustedTypes {
  createPolicy(name: string, rules: WorkerPolicy): WorkerPolicy;
}

class Handover {
  private worker: ServiceWorker | null = null;
  /** The page may create the policy only once, and signs in again if a link is pasted into an open tab. */
  private policy: WorkerPolicy | undefined;

  /** Whether this tab was signed in before the page was loaded. */
  get returning(): boolean {
    return sessionStorage.getItem(TAB) !== null;
  }

  /** Takes the credential back from the service worker. */
  async take(): Promise<Credential | null> {
    const tab = sessionStorage.getItem(TAB);
    if (tab === null || !('serviceWorker' in navigator)) return null;
    // This must happen before the worker is registered again, which may replace the worker that holds the credential.
    const registration = await navigator.serviceWorker.getRegistration('/').catch(() => undefined);
    const worker = registration?.active;
    if (!worker) return null;
    const { port1, port2 } = new MessageChannel();
    const answer = new Promise<Credential | null>((resolve) => {
      port1.onmessage = ({ data }: MessageEvent<Credential | null>) => resolve(data);
    });
    worker.postMessage({ take: true, tab } satisfies Message, [port2]);
    const taken = await within(answer);
    // This worker can keep the credential of the next reload, too, while the browser still registers it again.
    if (taken !== null) this.worker = worker;
    return taken;
  }

  /** Starts the worker. In a browser without service workers, a reload signs out. */
  async start(): Promise<void> {
    if (!('serviceWorker' in navigator)) return;
    try {
      const { trustedTypes } = window as { trustedTypes?: TrustedTypes };
      this.policy ??= trustedTypes?.createPolicy('plexus-worker', { createScriptURL: () => WORKER });
      await navigator.serviceWorker.register(this.policy?.createScriptURL(WORKER) ?? WORKER, {
        scope: '/',
        updateViaCache: 'none',
      });
      this.worker = (await within(navigator.serviceWorker.ready))?.active ?? this.worker;
    } catch {
      // The worker that returned the credential stays, if there is one.
    }
  }

  /** Hands the credential over when the page unloads. */
  give(credential: Credential): void {
    const tab = sessionStorage.getItem(TAB);
    if (tab !== null) this.worker?.postMessage({ keep: credential, tab } satisfies Message);
  }

  /** Marks the tab as signed in. */
  open(): void {
    if (!this.returning) sessionStorage.setItem(TAB, hex(crypto.getRandomValues(new Uint8Array(8))));
  }

  /** Marks the tab as signed out. */
  close(): void {
    sessionStorage.removeItem(TAB);
  }
}

async function within<T>(promise: Promise<T>): Promise<T | null> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<null>((resolve) => {
    timer = setTimeout(() => resolve(null), PATIENCE);
  });
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}

export const handover = new Handover();

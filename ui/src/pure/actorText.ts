/** The name of a person, token, agent or hub that created or answered something. */

import type { Decider } from '../wire';

/** The name of a session by its id, if the session is known. */
export type SessionNames = (id: string) => string | undefined;

export function actorText(actor: Decider, names: SessionNames, operator = 'you'): string {
  switch (actor.kind) {
    case 'operator':
      return operator;
    case 'hub':
      return 'the hub';
    case 'token':
      return `token ${actor.name}`;
    case 'session':
      // Without the kind, a session with the name `you` would look like the operator.
      return `session ${names(actor.id) ?? actor.id.slice(0, 8)}`;
    case 'parent':
      return `external agent ${actor.id}`;
  }
}

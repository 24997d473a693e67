/** The name of an actor as this viewer sees it. */

import { actorText } from '../pure/actorText';
import { visible } from '../pure/text';
import type { Decider } from '../wire';
import { sessions } from './sessions.svelte';
import { viewer } from './viewer.svelte';

export function actorName(actor: Decider): string {
  // Only the operator may add rules for every session.
  const operator = viewer.can('rule') ? 'you' : 'the operator';
  return visible(actorText(actor, (id) => sessions.path(id), operator));
}

/** The name of an actor as this viewer sees it. */

import { actorText } from '../pure/actorText';
import { visible } from '../pure/text';
import type { Decider } from '../wire';
import { sessions } from './sessions.svelte';
import { viewer } from './viewer.svelte';

export function actorName(actor: Decider): string {
  return visible(actorText(actor, (id) => sessions.path(id), operatorName()));
}

/** The operator as this viewer sees it. Only the operator may add rules for every session. */
export function operatorName(): string {
  return viewer.can('rule') ? 'you' : 'the operator';
}

/** What `loopback.get` tells, with `context`, of an approval beyond itself. */

import type { FileNow } from '../lib/against';
import type { Approval, ApprovalStatus, Who } from '../lib/wire';

export interface Purpose {
  /** From the root of the tree down to the session that asks. */
  path: { id: string; name: string }[];
  turn: number;
  /** Left out where the turn was begun otherwise. */
  prompt?: string;
  truncated?: boolean;
}

/** What a call like this one got before. */
export interface Like {
  at: number;
  status: ApprovalStatus;
  by: Who;
  message?: string;
  /** The same input, to the letter. */
  same: boolean;
  /** It ran with another input than it was asked with. */
  edited?: boolean;
  summary: string;
}

export interface Got {
  approval: Approval;
  /** The file that the call changes, as it is now; left out for tools that change none. */
  file?: FileNow;
  purpose?: Purpose;
  like?: Like[];
}

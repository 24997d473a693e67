/** What `loopback.get` tells of an approval beyond itself. Who made the hub may be older: all of it may be missing. */

import type { Approval, ApprovalStatus, Who } from '../lib/wire';

export interface Purpose {
  /** From the root of the tree down to the session that asks. */
  path: { id: string; name: string }[];
  turn: number;
  prompt: string;
}

/** What a call like this one got before. */
export interface Like {
  at: number;
  status: ApprovalStatus;
  by: Who;
  message?: string;
  /** The same input, to the letter. */
  same: boolean;
  summary: string;
}

export interface Got {
  approval: Approval;
  purpose?: Purpose;
  like?: Like[];
}

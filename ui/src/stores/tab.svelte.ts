/** Signals for a hidden tab: the number of open approvals in the title and on the icon, and browser notifications. */

import { actionOf, actionText } from '../pure/action';
import { sessionLabel } from '../pure/approvalText';
import { visible } from '../pure/text';
import { approvals } from './approvals.svelte';
import { live } from './live.svelte';
import { router } from './router.svelte';

class Tab {
  askable = $state('Notification' in window && Notification.permission === 'default');
  private icon = document.querySelector<HTMLLinkElement>('link[rel="icon"]');
  private plain = this.icon?.href ?? '';
  private shown = 0;

  constructor() {
    live.listen({
      approval: (what, approval) => {
        if (what !== 'asked' || approval.status !== 'pending' || approvals.get(approval.id) === undefined) return;
        if (!document.hidden || !('Notification' in window) || Notification.permission !== 'granted') return;
        const note = new Notification(
          visible(`${sessionLabel(approval)}: ${actionText(actionOf(approval))}`.slice(0, 200)),
          {
            tag: approval.id,
          },
        );
        note.onclick = () => {
          window.focus();
          router.go({ view: 'inbox', approval: approval.id });
          note.close();
        };
      },
    });
  }

  async ask(): Promise<void> {
    await Notification.requestPermission();
    this.askable = Notification.permission === 'default';
  }

  show(open: number): void {
    document.title = open > 0 ? `(${open}) Plexus` : 'Plexus';
    if (open === this.shown || !this.icon) return;
    this.shown = open;
    this.icon.href = open > 0 ? (numbered(open) ?? this.plain) : this.plain;
  }
}

/** The icon with a number. */
function numbered(open: number): string | null {
  const canvas = document.createElement('canvas');
  canvas.width = canvas.height = 32;
  const draw = canvas.getContext('2d');
  if (!draw) return null;
  draw.fillStyle = '#b3261e';
  draw.beginPath();
  draw.roundRect(0, 0, 32, 32, 7);
  draw.fill();
  draw.fillStyle = '#fff';
  draw.font = `bold ${open > 99 ? 15 : 20}px sans-serif`;
  draw.textAlign = 'center';
  draw.textBaseline = 'middle';
  draw.fillText(open > 99 ? '99+' : String(open), 16, 17);
  return canvas.toDataURL('image/png');
}

export const tab = new Tab();

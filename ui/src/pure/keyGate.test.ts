import { describe, expect, test } from 'vitest';
import { KeyGate, PAUSE } from './keyGate';

describe('KeyGate', () => {
  test('a key acts while no dialog is open', () => {
    expect(new KeyGate().pressed(0)).toBe(true);
  });

  test('no key acts while a dialog is open, wherever the focus is', () => {
    const gate = new KeyGate();
    gate.opened();
    expect(gate.pressed(0)).toBe(false);
    expect(gate.pressed(10 * PAUSE)).toBe(false);
  });

  test('the letters of a word that is typed into a closed dialog do not act', () => {
    const gate = new KeyGate();
    gate.pressed(0);
    gate.opened();
    // The space activates the button that closes the dialog.
    gate.pressed(1_000);
    gate.closed();
    for (let at = 1_000; at < 1_000 + 4 * PAUSE; at += PAUSE / 4) expect(gate.pressed(at)).toBe(false);
  });

  test('a key acts after a pause', () => {
    const gate = new KeyGate();
    gate.opened();
    gate.pressed(0);
    gate.closed();
    expect(gate.pressed(PAUSE - 1)).toBe(false);
    expect(gate.pressed(2 * PAUSE)).toBe(true);
    expect(gate.pressed(2 * PAUSE + 1)).toBe(true);
  });

  test('a key acts at once after a dialog that the pointer closed', () => {
    const gate = new KeyGate();
    gate.opened();
    gate.pressed(0);
    gate.pointed();
    gate.closed();
    expect(gate.pressed(1)).toBe(true);
  });

  test('the outer dialog still takes the keys after the inner one closed', () => {
    const gate = new KeyGate();
    gate.opened();
    gate.opened();
    gate.pointed();
    gate.closed();
    expect(gate.pressed(0)).toBe(false);
  });
});

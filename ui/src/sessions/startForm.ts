/**
 * The form that starts a session, and a template in it. The session gets exactly what the form shows, and what a template
 * has besides: its MCP servers, the setup of its worktree and its other budgets.
 */
import type { Budget, Isolation, PermissionMode, PolicyName, TemplateView } from '../wire';

export interface StartForm {
  prompt: string;
  working_dir: string;
  model: string;
  permission_mode: PermissionMode;
  policy: PolicyName;
  cost: string;
  worktree: boolean;
}

/** The form filled with a template. The template replaces every field that it can contain; its directory and prompt only if it has them. */
export function filled(form: StartForm, template: TemplateView): StartForm {
  return {
    prompt: template.prompt ?? form.prompt,
    working_dir: template.working_dir ?? form.working_dir,
    model: template.model ?? '',
    permission_mode: template.permission_mode ?? 'default',
    policy: template.policy ?? 'own_course',
    cost: template.budget?.cost_usd === undefined ? '' : String(template.budget.cost_usd),
    worktree: template.isolation !== undefined,
  };
}

/** The form without a template that filled it: a field that the person has not changed since gets its earlier value. */
export function unfilled(form: StartForm, before: StartForm, template: TemplateView): StartForm {
  const given = filled(before, template);
  const kept = Object.entries(form).filter(([name, value]) => value !== given[name as keyof StartForm]);
  return { ...before, ...Object.fromEntries(kept) };
}

/** An amount of money that a person typed, with a point or a comma before the cents; null if it is none. */
export function costOf(typed: string): number | null {
  const text = typed.trim().replace(/^\$\s*/, '');
  // In "1,000" the comma may separate thousands or cents.
  return /^\d*[.,]?\d+$/.test(text) && !/,\d{3}$/.test(text) ? Number(text.replace(',', '.')) : null;
}

/** The settings for `claudecode.create` and `template.save`. */
export function settings(form: StartForm, template?: TemplateView) {
  const { cost_usd: _, ...others } = template?.budget ?? {};
  const cost = form.cost.trim();
  const budget: Budget = cost === '' ? others : { ...others, cost_usd: costOf(cost) ?? Number.NaN };
  const isolation: Isolation | undefined = form.worktree ? (template?.isolation ?? 'worktree') : undefined;
  const model = form.model.trim();
  return {
    permission_mode: form.permission_mode,
    policy: form.policy,
    ...(model === '' ? {} : { model }),
    ...(isolation === undefined ? {} : { isolation }),
    ...(Object.keys(budget).length === 0 ? {} : { budget }),
  };
}

/**
 * Whether the hub has to read the template: only it knows the MCP servers with their secrets. It then fills in every parameter that the
 * page omits.
 */
export function needsTemplate(template?: TemplateView): boolean {
  return (template?.mcp_servers ?? []).length > 0;
}

/** The field that is empty in the form, but that the hub would fill in from the template. */
export function refilledField(form: StartForm, template?: TemplateView): string | null {
  if (template === undefined || !needsTemplate(template)) return null;
  if (form.prompt.trim() === '' && template.prompt !== undefined) return 'prompt';
  if (form.model.trim() === '' && template.model !== undefined) return 'model';
  if (!form.worktree && template.isolation !== undefined) return 'isolation';
  if (form.cost.trim() === '' && template.budget !== undefined && settings(form, template).budget === undefined)
    return 'budget';
  return null;
}

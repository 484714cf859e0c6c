/** Positions a floating box beside its anchor, inside the window. */
export function placeBeside(box: HTMLElement, anchor: Element, { align = "start", side = "bottom" } = {}): void {
  const at = anchor.getBoundingClientRect();
  const { offsetWidth: width, offsetHeight: height } = box;
  const gap = 4;
  const edge = 8;
  let left = align === "end" ? at.right - width : at.left;
  let top = at.bottom + gap;
  if (side === "right") [left, top] = [at.right + gap, at.top];
  const above = at.top - height - gap;
  if ((side === "top" && above >= edge) || (top + height > window.innerHeight - edge && above >= edge)) top = above;
  box.style.left = `${Math.max(edge, Math.min(left, window.innerWidth - width - edge))}px`;
  box.style.top = `${Math.max(edge, Math.min(top, window.innerHeight - height - edge))}px`;
}

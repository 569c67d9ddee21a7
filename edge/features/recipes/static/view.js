// Shows a chart that the gateway has drawn, with what matters in the middle of the view.

// Shows an SVG text in an image, and moves to the first rectangle that matches.
export async function show(image, text, pattern) {
  const before = image.src;
  image.src = URL.createObjectURL(new Blob([text], { type: "image/svg+xml" }));
  await image.decode().catch(() => {});
  if (before.startsWith("blob:")) URL.revokeObjectURL(before);
  const size = /<svg [^>]*?width="(\d+)"/.exec(text);
  const place = pattern.exec(text);
  if (!size || !place) return;
  const paper = image.parentElement;
  const scale = image.clientWidth / Number(size[1]);
  const [, x, y] = place.map(Number);
  paper.scrollTo({
    left: x * scale - paper.clientWidth / 2,
    top: y * scale - paper.clientHeight / 2,
    behavior: matchMedia("(prefers-reduced-motion: reduce)").matches ? "auto" : "smooth",
  });
}

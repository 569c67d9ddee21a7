// Returns the page as one SVG document: its elements with their styles, its pictures within.
(async () => {
  const xml = new XMLSerializer();
  const rules = [...document.styleSheets].flatMap((sheet) => [...sheet.cssRules]);
  // Rules for sizes and colours of screens would follow the reader of the picture.
  const css = rules.filter((rule) => !(rule instanceof CSSMediaRule)).map((rule) => rule.cssText);
  const body = document.body.cloneNode(true);
  for (const each of body.querySelectorAll("dialog, script, footer, [hidden], .skip")) each.remove();
  for (const image of body.querySelectorAll("img")) {
    // The chart that follows its step is drawn from memory, which the page may not fetch.
    const source = image.src.startsWith("blob:") ? image.closest("[data-chart]").dataset.chart : image.src;
    const text = await (await fetch(source)).text();
    image.src = `data:image/svg+xml,${encodeURIComponent(text)}`;
    for (const name of ["data-picture", "loading"]) image.removeAttribute(name);
  }
  body.removeAttribute("data-subjects");
  const size = `width="${innerWidth}" height="${innerHeight}"`;
  const style = document.createElementNS("http://www.w3.org/2000/svg", "style");
  style.textContent = css.join("\n").replaceAll("color-scheme: light dark;", "");
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${innerWidth} ${innerHeight}" ${size}>${xml.serializeToString(style)}<foreignObject ${size}>${xml.serializeToString(body)}</foreignObject></svg>\n`;
})()

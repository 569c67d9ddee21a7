// Returns a text with words in its places: `{name}` becomes `words.name`, whatever characters that has.
export function worded(text, words) {
  return text.replace(/\{(\w+)\}/g, (place, name) => words[name] ?? place);
}

// ---- Differences of two texts, word by word (longest common subsequence)
const MOST_COMPARED = 4e6; // words of one times words of the other
function words(text) {
  return text.match(/\s+|[\p{L}\p{N}_]+|[^\s\p{L}\p{N}_]/gu) ?? [];
}
// For each text, whether each of its words is in the other, too; null if too long to say.
function common(one, two) {
  let [start, end] = [0, 0];
  while (start < one.length && start < two.length && one[start] === two[start]) start++;
  while (end < one.length - start && end < two.length - start && one.at(-1 - end) === two.at(-1 - end)) end++;
  const [a, b] = [one.slice(start, one.length - end), two.slice(start, two.length - end)];
  if (a.length * b.length > MOST_COMPARED) return null;
  const width = b.length + 1;
  const lengths = new Uint32Array((a.length + 1) * width);
  for (let i = a.length - 1; i >= 0; i--) for (let j = b.length - 1; j >= 0; j--) {
    lengths[i * width + j] = a[i] === b[j] ? lengths[(i + 1) * width + j + 1] + 1 : Math.max(lengths[(i + 1) * width + j], lengths[i * width + j + 1]);
  }
  const same = [one.map((_, place) => place < start || place >= one.length - end), two.map((_, place) => place < start || place >= two.length - end)];
  for (let i = 0, j = 0; i < a.length && j < b.length;) {
    if (a[i] === b[j]) { same[0][start + i++] = true; same[1][start + j++] = true; }
    else if (lengths[(i + 1) * width + j] >= lengths[i * width + j + 1]) i++; else j++;
  }
  return same;
}
// Both texts as nodes, with what only one of them has in <mark>; as they are if they have little in common.
function marked(left, right) {
  const [one, two] = [words(left), words(right)];
  const same = left === right ? null : common(one, two);
  const shared = (list, flags) => list.filter((word, place) => flags[place] && word.trim()).length;
  const enough = same && 2 * shared(one, same[0]) >= Math.min(one.filter((word) => word.trim()).length, two.filter((word) => word.trim()).length);
  if (!enough) return [[left], [right]];
  return [[one, same[0]], [two, same[1]]].map(([list, flags]) => {
    const nodes = [];
    let [run, kept] = ["", true];
    const flush = () => { if (run) nodes.push(kept ? run : make("mark", run)); run = ""; };
    list.forEach((word, place) => {
      // Space between two marked words is marked with them.
      const keep = word.trim() ? flags[place] : flags[place] && (kept || flags[place + 1] !== false);
      if (keep !== kept) { flush(); kept = keep; }
      run += word;
    });
    flush();
    return nodes;
  });
}

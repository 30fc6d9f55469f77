// Measure a page of the site: `wide` gives what is wider than the window, `pale` text that is hard to read, `links` and `places`
// the addresses that the page leads to, and its own.
var measure = (() => {
  const rgba = (text) => {
    const numbers = text.match(/[\d.]+/g)?.map(Number) ?? [0, 0, 0, 0];
    return numbers.length < 4 ? [...numbers, 1] : numbers;
  };
  const over = (front, back) => front.slice(0, 3).map((value, i) => value * front[3] + back[i] * (1 - front[3]));
  // Most elements share their parents, and most parents their colour: what was computed once is kept by `known`.
  const background = (element, known) => {
    if (!element) return [255, 255, 255];
    if (!known.has(element)) {
      const layer = rgba(getComputedStyle(element).backgroundColor);
      const below = background(element.parentElement, known);
      known.set(element, layer[3] ? over(layer, below) : below);
    }
    return known.get(element);
  };
  const luminance = (color) => {
    const [r, g, b] = color.map((value) => {
      const part = value / 255;
      return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const contrast = (a, b) => {
    const [low, high] = [luminance(a), luminance(b)].sort((x, y) => x - y);
    return (high + 0.05) / (low + 0.05);
  };

  // Elements that may be scrolled hold what is in them; others must end within the window.
  const scrolls = (element) => {
    for (let at = element; at; at = at.parentElement) {
      if (/auto|scroll|hidden/.test(getComputedStyle(at).overflowX) && at !== document.body && at !== document.documentElement) return true;
    }
    return false;
  };
  const article = document.querySelector("article") ?? document.body;

  const wide = () => {
    const width = document.documentElement.clientWidth;
    const found = [];
    if (document.documentElement.scrollWidth > width) found.push(`the page is ${document.documentElement.scrollWidth} wide`);
    for (const element of article.querySelectorAll("*")) {
      const box = element.getBoundingClientRect();
      if (box.width && box.right > width + 1 && !scrolls(element)) found.push(`<${element.tagName.toLowerCase()}> ends at ${Math.round(box.right)}: ${element.textContent.trim().slice(0, 40)}`);
    }
    return found.slice(0, 5);
  };

  const pale = () => {
    const [known, kinds, seen] = [new Map(), new Map(), new Set()];
    const walker = document.createTreeWalker(article, NodeFilter.SHOW_TEXT);
    for (let node = walker.nextNode(); node; node = walker.nextNode()) {
      const element = node.parentElement;
      if (seen.has(element) || !node.textContent.trim()) continue; // the other texts of an element have its colours
      seen.add(element);
      if (!element.offsetParent || element.closest(".headerlink, svg, script, style, .md-clipboard")) continue;
      const back = background(element, known);
      const front = over(rgba(getComputedStyle(element).color), back);
      const key = `${front}/${back}`;
      if (kinds.has(key)) continue;
      kinds.set(key, { contrast: contrast(front, back), text: node.textContent.trim().slice(0, 30), element: `${element.tagName.toLowerCase()}.${element.className}` });
    }
    const found = [...kinds.values()].filter((row) => row.contrast.toFixed(1) < __CONTRAST__);
    return found.slice(0, 8).map((row) => ({ ...row, contrast: row.contrast.toFixed(2) }));
  };

  const links = () => [...new Set([...document.querySelectorAll("a[href]")].map((link) => link.href))];
  const places = () => [...document.querySelectorAll("[id], a[name]")].map((element) => element.id || element.name);
  return { wide, pale, links, places };
})();

// Measure a page of the site: what is wider than the window, text that is hard to read, links, and places to link to.
(() => {
  const rgba = (text) => {
    const numbers = text.match(/[\d.]+/g)?.map(Number) ?? [0, 0, 0, 0];
    return numbers.length < 4 ? [...numbers, 1] : numbers;
  };
  const over = (front, back) => front.slice(0, 3).map((value, i) => value * front[3] + back[i] * (1 - front[3]));
  const background = (element) => {
    const layers = [];
    for (let at = element; at; at = at.parentElement) layers.push(rgba(getComputedStyle(at).backgroundColor));
    return layers.reverse().reduce((below, layer) => over(layer, below), [255, 255, 255]);
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
  const width = document.documentElement.clientWidth;
  const wide = [];
  const article = document.querySelector("article") ?? document.body;
  if (document.documentElement.scrollWidth > width) wide.push(`the page is ${document.documentElement.scrollWidth} wide`);
  for (const element of article.querySelectorAll("*")) {
    const box = element.getBoundingClientRect();
    if (box.width && box.right > width + 1 && !scrolls(element)) wide.push(`<${element.tagName.toLowerCase()}> ends at ${Math.round(box.right)}: ${element.textContent.trim().slice(0, 40)}`);
  }

  const kinds = new Map();
  const walker = document.createTreeWalker(article, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const element = node.parentElement;
    const style = getComputedStyle(element);
    if (!node.textContent.trim() || !element.offsetParent || element.closest(".headerlink, svg, script, style, .md-clipboard")) continue;
    const back = background(element);
    const front = over(rgba(style.color), back);
    const found = contrast(front, back);
    const key = `${front}/${back}`;
    if (found.toFixed(1) < __CONTRAST__ && !kinds.has(key)) kinds.set(key, { contrast: found.toFixed(2), text: node.textContent.trim().slice(0, 30), element: `${element.tagName.toLowerCase()}.${element.className}` });
  }

  const links = [...document.querySelectorAll("a[href]")].map((link) => link.href);
  return {
    wide: wide.slice(0, 5),
    pale: [...kinds.values()].slice(0, 8),
    links: [...new Set(links)],
    places: [...document.querySelectorAll("[id], a[name]")].map((element) => element.id || element.name),
  };
})()

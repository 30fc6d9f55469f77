// Put questions to the search of a built site: node search.mjs SITE QUESTION... prints a line of JSON for each.
import fs from "node:fs";
import path from "node:path";
import vm from "node:vm";

const [site, ...questions] = process.argv.slice(2);
const folder = path.join(site, "assets/javascripts/workers");
const worker = fs.readdirSync(folder).find((name) => /^search\..*\.min\.js$/.test(name));
const index = JSON.parse(fs.readFileSync(path.join(site, "search/search_index.json")));

// The worker talks by messages: 0 sets it up, 1 says that it is ready, 2 asks, 3 answers.
const replies = [];
let wake;
const context = vm.createContext({ console, setTimeout, URL });
Object.assign(context, {
  self: context,
  location: { href: "http://localhost/" },
  importScripts: () => {},
  postMessage: (message) => { replies.push(message); wake?.(); },
  addEventListener: (type, listener) => { if (type === "message") context.onmessage = listener; },
});
vm.runInContext(fs.readFileSync(path.join(folder, worker), "utf8"), context);

async function reply(message, type) {
  context.onmessage({ data: message });
  for (;;) {
    const at = replies.findIndex((found) => found.type === type);
    if (at >= 0) return replies.splice(at, 1)[0];
    await new Promise((resolve) => { wake = resolve; });
  }
}

await reply({ type: 0, data: { config: index.config, docs: index.docs, options: { suggest: false } } }, 1);
for (const question of questions) {
  const { data } = await reply({ type: 2, data: question }, 3);
  console.log(JSON.stringify({ question, pages: data.items.map((sections) => sections[0].location) }));
}

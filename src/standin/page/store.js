/** What the page knows. Filled by the stream; the views read it. */
export const store = {
  me: '',
  team: { name: '' },
  bot: {},
  people: [],
  usergroups: [],
  channels: [],
  commands: [],
  messages: new Map(),
  modals: [],
  home: null,
  sockets: 0,
  box: null,
  boxName: '',
  boxHistory: [],
  guide: [],
  situations: [],
  situation: '',
  place: '',
  thread: '',
  unread: new Map(),
};

export const keyOf = (m) => `${m.channel} ${m.ts}`;
export const personOf = (id) => store.people.find((p) => p.id === id);
export const channelOf = (id) => store.channels.find((c) => c.id === id);
export const isHome = () => store.place === 'home';

export function nameOf(id) {
  if (id === store.bot.userId) return store.bot.name;
  return personOf(id)?.realName ?? id;
}

export function messagesIn(channel) {
  return [...store.messages.values()]
    .filter((m) => m.channel === channel && (!m.thread_ts || m.thread_ts === m.ts || m.also_in_channel))
    .sort((a, b) => Number(a.ts) - Number(b.ts));
}

export function threadOf(channel, ts) {
  return [...store.messages.values()]
    .filter((m) => m.channel === channel && (m.ts === ts || m.thread_ts === ts))
    .sort((a, b) => Number(a.ts) - Number(b.ts));
}

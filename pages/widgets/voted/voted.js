// Which challenges this tab has had counted in a room: kept by the tab itself, in its session storage, so that a reload
// counts nothing twice. It says what, never who; it is gone with the tab.

const NAME = "carry-lab-counted";

/** Streamlit calls this at mount and whenever the data change. */
export default function ({ data, setStateValue }) {
  const all = read();
  const known = all[data.room] ?? [];
  const counted = [...new Set([...known, ...data.counted])].slice(-data.most);
  if (counted.length > known.length) write({ ...all, [data.room]: counted }, data.room);
  if (counted.some((key) => !data.counted.includes(key))) setStateValue("counted", { room: data.room, counted });
}

function read() {
  try {
    const found = JSON.parse(sessionStorage.getItem(NAME));
    const rooms = found && typeof found === "object" ? Object.entries(found) : [];
    return Object.fromEntries(rooms.filter(([, keys]) => Array.isArray(keys)));
  } catch {
    return {}; // a browser that keeps nothing
  }
}

/** A few rooms are kept: the newest is written last. */
function write(all, room) {
  const { [room]: now, ...others } = all;
  try {
    const kept = [...Object.entries(others).slice(-7), [room, now]];
    sessionStorage.setItem(NAME, JSON.stringify(Object.fromEntries(kept)));
  } catch {
    // Then a reload may count once more.
  }
}

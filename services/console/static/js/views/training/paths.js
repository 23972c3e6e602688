// Paths as people type them, of any system. No elements.

const FILE = "mahe_model.npz";
const SUFFIX = /\.npz$/i;
const LAST = /[^\\/]*$/;

/** The folder that a file's path names; "": where paths begin that are not absolute. */
export function folderOf(path) {
  const folder = path.replace(LAST, "");
  return folder.length > 1 ? folder.replace(/[\\/]$/, "") : folder;
}

/** A file in that folder, with the name that `path` has already. */
export function fileIn(folder, path) {
  if (SUFFIX.test(folder)) return folder;
  const name = path.match(LAST)[0];
  const separator = folder.includes("\\") ? "\\" : "/";
  const begin = folder === "" || /[\\/]$/.test(folder) ? folder : folder + separator;
  return begin + (SUFFIX.test(name) ? name : FILE);
}

// Package fs has the tools with which an agent works on files: read_file,
// write_file, edit_file, delete_file, list_directory, mkdir and file_exists.
//
//	root := fs.Root{Dir: "work", Only: []string{"src", "docs"}}
//	agent.Config{Use: []agent.Middleware{fs.Read(root), fs.List(root), fs.Edit(root)}}
//
// A tool works below the [Root] that it was made with and nowhere else; two tools
// of one agent may have different ones. Paths are relative to the root's directory
// and have slashes, as ".github/ci.yml". An absolute path is taken if it leads
// there too.
//
// # What is refused
//
// Every path is resolved by [os.Root]: neither ".." nor a symbolic link leads out,
// whoever made the link and however quickly. Beyond that only regular files with a
// single name are read or written. A device or a named pipe could block the agent
// or do something on being opened; a second name (a hard link) may lie outside of
// the root. A file is never written through a symbolic link: the link's target has
// to be named.
//
// Whatever lies in .git or .stone, or has a name in Refuse, is neither read nor
// changed, also through a link: programs outside run what these directories say. List
// them in Only to allow them. Everything else below Dir can be read, a file .env too.
//
// # What is bounded
//
// A call reads at most MaxRead bytes and says how to go on, so a file may have any
// size; it is never loaded whole. No file larger than MaxFile is written or edited,
// and a listing has at most 1,000 entries.
//
// # Writing
//
// A file is replaced in one step: whoever reads it sees the old text or the new
// one, and after a crash too. It keeps its permissions. Writes and edits of one
// program take their turns, so that of two edits none is lost.
package fs

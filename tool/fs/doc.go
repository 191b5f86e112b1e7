// Package fs gives agents tools for files: read_file, view_file, write_file, edit_file, delete_file, list_directory, mkdir and
// file_exists.
//
//	root := fs.Root{Dir: "work", Only: []string{"src", "docs"}}
//	agent.Config{Use: []agent.Middleware{fs.Read(root), fs.List(root), fs.Edit(root)}}
//
// A tool works only below its [Root]; two tools of one agent may have different roots. Paths are relative to the root's directory
// and use slashes, as in ".github/ci.yml". An absolute path is accepted if it leads below the root.
//
// # Refused paths
//
// [os.Root] resolves every path: neither ".." nor a symbolic link leads out, even if a
// link changes during the call. Only regular files with a single name are read or
// written. Opening a device or a named pipe could block the agent or have an effect; a
// second name (a hard link) may be outside the root. A file is never written through
// a symbolic link: the model must name the link's target.
//
// Entries of .git and .stone, and names in Refuse, are neither read nor changed, not even through a link: other programs run
// commands from these directories. List them in Only to allow them. Names that match ReadOnly can be read but never changed: for
// example, an agent that repairs code may not change its tests. All other files below Dir can be read, including a file .env.
//
// # Tools of your own
//
// If you write a tool that takes a path, find the file with [Root.Resolve]; its example counts lines.
//
// # Bounds
//
// A call reads at most MaxRead bytes and returns the next offset, so a file may have any
// size; it is never loaded whole. No file larger than MaxFile is written or edited, and
// a listing has at most 1,000 entries.
//
// # Writing
//
// A file is replaced atomically: readers see the old or the new text, even after a crash. The file keeps its permissions. Writes
// and edits within one program are serialized, so concurrent edits are not lost.
//
// # Tools
//
// [Read], [View], [List] and [Exists] read; [Write], [Edit], [Delete] and [Mkdir] change files, each with an approver.
package fs

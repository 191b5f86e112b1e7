// Package fs gives agents tools for files: read_file, view_file, write_file, edit_file, delete_file, list_directory, mkdir and
// file_exists.
//
//	root := fs.Root{Dir: "work", Only: []string{"src", "docs"}}
//	agent.Config{Use: []agent.Middleware{fs.Read(root), fs.List(root), fs.Edit(root)}}
//
// A tool can access files only below its [Root]. Two tools of one agent may have different roots. Paths are relative to the
// root's directory and use slashes, as in ".github/ci.yml". An absolute path is accepted if it leads below the root.
//
// # Refused paths
//
// [os.Root] resolves every path, so neither ".." nor a symbolic link can lead out of the root, even if a link changes during the
// call. Only regular files with a single name are read or written. Opening a device or a named pipe could block the agent or have
// an effect; and another name of the file (a hard link) may be outside the root. A file is never written through a symbolic link:
// the model must name the link's target.
//
// Entries of .git and .stone, and names in Refuse, are neither read nor changed, not even through a link, because other programs
// run commands from .git and .stone. To allow access to such a directory, list it in Only. Names that match ReadOnly can be read
// but never changed. For example, an agent that repairs code should not change the tests. All other files below Dir can be read,
// including a file .env.
//
// # Tools of your own
//
// If you write a tool that accepts a path, find the file with [Root.Resolve]. Its example counts lines.
//
// # Bounds
//
// A call reads at most MaxRead bytes and returns the number of the next line, so a file can have any size and is never loaded as
// a whole. Files larger than MaxFile cannot be written or edited, and a listing contains at most 1,000 entries.
//
// # Writing
//
// A file is replaced atomically: readers see the old or the new text, even after a crash. The file keeps its permissions. Writes
// and edits within one program are serialized, so concurrent edits are not lost.
//
// # Tools
//
// [Read], [View], [List] and [Exists] only read. [Write], [Edit], [Delete] and [Mkdir] change files; see [tool.Confirm] for
// approvals.
package fs

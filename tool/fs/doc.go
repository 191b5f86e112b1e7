// Package fs gives agents tools for files: read_file, view_file, write_file, edit_file, delete_file, list_directory, mkdir and
// file_exists.
//
//	root := fs.Root{Dir: "work", Only: []string{"src", "docs"}}
//	agent.Config{Use: []agent.Middleware{fs.Read(root), fs.List(root), fs.Edit(root)}}
//
// A tool can access only the files below its [Root]. The tools of an agent may have different roots. Paths are relative to the
// root's directory and use slashes, as in ".github/ci.yml". An absolute path is accepted if it leads to a file below the root.
//
// # Refused paths
//
// [os.Root] resolves every path, so neither ".." nor a symbolic link can lead out of the root, even if a link changes during the
// call. Tools read and write only regular files without additional hard links, because opening a device or a named pipe could
// block the agent or have an effect, and another link to the file may be outside the root. A file is never written through a
// symbolic link: the model must name the link's target.
//
// The tools neither read nor change the contents of .git and .stone, because other programs run commands from these directories,
// nor files and directories whose names are in Refuse. Links do not circumvent this. To allow access to such a directory, list it
// in Only. Files whose names match ReadOnly can be read but not changed. Use it, for example, to prevent an agent that repairs
// code from changing the tests. All other files below Dir can be read, even a file .env.
//
// # Tools of your own
//
// If you write a tool that accepts a path, use [Root.Resolve] to find the file. Its example is a tool that counts lines.
//
// # Bounds
//
// A call of read_file returns at most MaxRead bytes and the number of the next line, so it can read files of any size in parts.
// Files larger than MaxFile cannot be written or edited. A listing contains at most 1,000 entries.
//
// # Writing
//
// A file is replaced atomically: readers see either the old or the new text, even after a crash. The file keeps its permissions.
// Within a program, only one file is changed at a time, so concurrent edits are not lost.
//
// # Tools
//
// [Read], [View], [List] and [Exists] only read. [Write], [Edit], [Delete] and [Mkdir] change files; see [tool.Confirm] for
// approvals.
package fs

// Package effect names the effects of steps on the world.
//
// A name is a family, such as "net", or a member of one, such as "net/http". A family covers its members: a run that grants "net"
// grants "net/http". The families fs, net, process and ask belong to Stone. A program may add its own families, such as
// "db/write".
// For example, [FSWrite] is a member of [FS].
package effect

const (
	// None means no effect in data.
	None = "none"
	// FS is any use of files.
	FS = "fs"
	// FSRead reads files.
	FSRead = "fs/read"
	// FSWrite creates, changes or deletes files.
	FSWrite = "fs/write"
	// Net reaches servers.
	Net = "net"
	// Process starts programs.
	Process = "process"
	// Ask puts a question to a person.
	Ask = "ask"
)

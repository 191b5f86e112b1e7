// Package effect names the effects of steps on the world.
//
// A name is a family, such as "net", or a member of one, such as "net/http". A family covers its members: a run that grants "net"
// grants "net/http". The families fs, net, process and ask belong to Stone. A program may add its own families, such as
// "db/write".
// For example, [FSWrite] is a member of [FS].
package effect

const (
	// None states, in data, that a step has no effects.
	None = "none"
	// FS is the family of effects on files. It covers FSRead and FSWrite.
	FS = "fs"
	// FSRead is the effect of reading files.
	FSRead = "fs/read"
	// FSWrite is the effect of creating, changing or deleting files.
	FSWrite = "fs/write"
	// Net is the effect of connecting to servers.
	Net = "net"
	// Process is the effect of starting programs.
	Process = "process"
	// Ask is the effect of asking a person a question.
	Ask = "ask"
)

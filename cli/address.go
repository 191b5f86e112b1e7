package cli

import (
	"cmp"
	"errors"
	"os"
	"slices"
	"strings"

	"github.com/stonelayer/stone/internal/kinds"
	"github.com/stonelayer/stone/internal/redact"
)

// storeEnv names the store without --db. Its password stays in the environment: a command
// line is seen by all users of the machine.
const (
	storeEnv  = "STONE_DB"
	listenEnv = "STONE_DB_LISTEN"
	indexEnv  = kinds.IndexEnv
)

// storeFlag is the value of --db or --index. An address loses its password, which goes to the
// variable, where programs that continue the command find it.
type storeFlag struct {
	name     *string
	variable string
}

func (f storeFlag) Type() string   { return "string" }
func (f storeFlag) String() string { return *f.name }

func (f storeFlag) Set(name string) error {
	*f.name = name
	if !redact.IsDatabase(name) {
		return nil
	}
	*f.name = redact.Database(name)
	if redact.HasPassword(name) || *f.name != redact.Database(os.Getenv(f.variable)) {
		return os.Setenv(f.variable, name)
	}
	return nil // the environment may have the password
}

var errSettings = errors.New("a database of a server is named by an address: postgres://USER@HOST/NAME")

// isSettings reports whether a store is named as PostgreSQL's own programs allow it, or by an address of another kind, as one
// that is misspelled: it is no file, and may have a password.
func isSettings(name string) bool {
	return !redact.IsDatabase(name) && (strings.Contains(name, "host=") || strings.Contains(name, "dbname=") || strings.Contains(name, "password=") || strings.Contains(name, "://"))
}

// secretless returns arguments of the command without the passwords of --db and --index.
func secretless(args []string) []string {
	args = slices.Clone(args)
	for i, arg := range args {
		if arg == "--" {
			break
		}
		for _, flag := range []string{"--db", "--index"} {
			if value, ok := strings.CutPrefix(arg, flag+"="); ok && redact.IsDatabase(value) {
				args[i] = flag + "=" + redact.Database(value)
			} else if redact.IsDatabase(arg) && i > 0 && args[i-1] == flag {
				args[i] = redact.Database(arg)
			}
		}
	}
	return args
}

// storeName returns the store that a flag or the environment names, or "".
func storeName(flag string) string { return cmp.Or(flag, os.Getenv(storeEnv)) }

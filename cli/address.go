package cli

import (
	"cmp"
	"context"
	"errors"
	"net/url"
	"os"
	"slices"
	"strings"

	"github.com/stonelayer/stone/internal/stores"
)

// storeEnv names the store without --db. Its password stays in the environment: a command
// line is seen by all users of the machine.
const (
	storeEnv  = "STONE_DB"
	listenEnv = "STONE_DB_LISTEN"
)

// isAddress reports whether a store is a database of a server, and no file.
func isAddress(name string) bool {
	return strings.HasPrefix(name, "postgres://") || strings.HasPrefix(name, "postgresql://")
}

// withoutPassword returns an address as people may see it, and "postgres://" for one that
// cannot be read.
func withoutPassword(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return "postgres://"
	}
	if u.User != nil {
		u.User = url.User(u.User.Username())
	}
	query := u.Query()
	for _, secret := range []string{"password", "sslpassword"} {
		query.Del(secret)
	}
	u.RawQuery = query.Encode()
	return u.String()
}

// storeFlag is the value of --db. An address loses its password, which goes to the
// environment, where programs that continue the command find it.
type storeFlag struct{ name *string }

func (f storeFlag) Type() string   { return "string" }
func (f storeFlag) String() string { return *f.name }

func (f storeFlag) Set(name string) error {
	*f.name = name
	if !isAddress(name) {
		return nil
	}
	*f.name = withoutPassword(name)
	if withPassword(name) || *f.name != withoutPassword(os.Getenv(storeEnv)) {
		return os.Setenv(storeEnv, name)
	}
	return nil // the environment may have the password
}

// withPassword reports whether an address may have a password.
func withPassword(address string) bool {
	u, err := url.Parse(address)
	if err != nil {
		return true
	}
	_, has := u.User.Password()
	return has || u.Query().Has("password")
}

var errSettings = errors.New("a database of a server is named by an address: postgres://USER@HOST/NAME")

// isSettings reports whether a store is named as PostgreSQL's own programs allow it: it is
// no file, and may have a password.
func isSettings(name string) bool {
	return strings.Contains(name, "host=") || strings.Contains(name, "dbname=") || strings.Contains(name, "password=")
}

// secretless returns arguments of the command without the password of --db.
func secretless(args []string) []string {
	args = slices.Clone(args)
	for i, arg := range args {
		if arg == "--" {
			break
		}
		if value, ok := strings.CutPrefix(arg, "--db="); ok && isAddress(value) {
			args[i] = "--db=" + withoutPassword(value)
		} else if isAddress(arg) && i > 0 && args[i-1] == "--db" {
			args[i] = withoutPassword(arg)
		}
	}
	return args
}

var errNoPostgres = errors.New(`this program does not link PostgreSQL: give cli.Main the part of package ` + postgresPackage)

// openServer opens the database at an address. It uses the password of the environment if the
// environment names the same address.
func (s *store) openServer(ctx context.Context, postgres *stores.Server, address string) (err error) {
	if postgres == nil {
		return errNoPostgres
	}
	s.file = withoutPassword(address)
	full := addressOf(address)
	s.secret = postgres.Secret(full)
	s.Store, err = postgres.Open(ctx, full, os.Getenv(listenEnv))
	return err
}

// addressOf returns an address with the password of the environment.
func addressOf(address string) string {
	of := os.Getenv(storeEnv)
	if seen := withoutPassword(of); isAddress(of) && (seen == address || seen == withoutPassword(address)) {
		return of
	}
	return address
}

// storeName returns the store that a flag or the environment names, or "".
func storeName(flag string) string { return cmp.Or(flag, os.Getenv(storeEnv)) }

package redact

import (
	"net/url"
	"os"
	"strings"
)

// IsDatabase reports whether a name is the address of a database on a server rather than the name of a file. A misspelled address
// such as "postgres:/" counts too, because it may contain a password.
func IsDatabase(name string) bool {
	return strings.HasPrefix(name, "postgres:") || strings.HasPrefix(name, "postgresql:")
}

// Database returns an address without its password, or "postgres://" if the address cannot be parsed.
func Database(address string) string {
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
	if seen := u.String(); IsDatabase(seen) && strings.Contains(seen, "://") {
		return seen
	}
	return "postgres://"
}

// HasPassword reports whether an address may contain a password.
func HasPassword(address string) bool {
	u, err := url.Parse(address)
	if err != nil {
		return true
	}
	_, has := u.User.Password()
	return has || u.Query().Has("password") || u.Query().Has("sslpassword")
}

// FullDatabase returns an address, with the password added from an environment variable that contains the same address. If there
// is no such variable, and the address was found rather than specified by the user, FullDatabase keeps passwords in PGPASSWORD
// and password files from being used for it.
func FullDatabase(address, variable string, found bool) string {
	of := os.Getenv(variable)
	if seen := Database(of); IsDatabase(of) && (seen == address || seen == Database(address)) {
		return of
	}
	u, err := url.Parse(address)
	if !found || !IsDatabase(address) || err != nil {
		return address
	}
	query := u.Query()
	query.Set("password", "")
	query.Set("passfile", "") // also replaces a passfile in the address itself
	u.RawQuery = query.Encode()
	return u.String()
}

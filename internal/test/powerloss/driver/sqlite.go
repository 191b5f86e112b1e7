// Package sqlite replaces the driver of journal/sqlite with a different driver that does not need cgo either, but allows the disk
// to be implemented in Go. It has the name of the original driver, and provides the part of its API that journal/sqlite uses.
package sqlite

import (
	"database/sql"
	"database/sql/driver"
	"net/url"

	"github.com/ncruces/go-sqlite3"
	other "github.com/ncruces/go-sqlite3/driver"
	_ "modernc.org/sqlite/lib" // part of the API
)

// Error is an error of SQLite.
type Error = sqlite3.Error

// Source can change the query of a data source name before it is opened. It must be set before the first call of Open.
var Source func(path string, query url.Values)

func init() { sql.Register("sqlite", substitute{}) }

type substitute struct{}

// Open implements [driver.Driver].
func (s substitute) Open(name string) (driver.Conn, error) {
	u, err := url.Parse(name)
	if err != nil {
		return nil, err
	}
	query := u.Query()
	Source(u.Path, query)
	u.RawQuery = query.Encode()
	return new(other.SQLite).Open(u.String())
}

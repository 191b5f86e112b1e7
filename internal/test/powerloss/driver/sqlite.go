// Package sqlite replaces the driver of journal/sqlite. It is the other driver that needs
// no cgo, under the first one's name and with the part of its API that journal/sqlite
// uses, because it lets Go code be the disk.
package sqlite

import (
	"database/sql"
	"database/sql/driver"
	"net/url"

	"github.com/ncruces/go-sqlite3"
	other "github.com/ncruces/go-sqlite3/driver"
	_ "modernc.org/sqlite/lib" // it belongs to the API
)

// Error is an error of SQLite.
type Error = sqlite3.Error

// Source changes the query of a data source before it is opened. Set it before the first
// open.
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

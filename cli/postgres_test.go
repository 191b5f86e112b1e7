//go:build unix

package cli_test

import (
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/stonelayer/stone/internal/test/pgtest"
	_ "github.com/stonelayer/stone/journal/postgres"
)

// password is not checked by the server of the tests, and must be seen nowhere.
const password = "pa55word-of-the-database"

func TestPostgres(t *testing.T) {
	params := scripts(t, "testdata/postgres")
	setup := params.Setup
	params.Setup = func(env *testscript.Env) error {
		name := pgtest.Database(t)
		user, rest, _ := strings.Cut(name, "@")
		env.Setenv("NAME", name)
		env.Setenv("DATABASE", user+":"+password+"@"+rest)
		env.Setenv("PASSWORD", password)
		return setup(env)
	}
	testscript.Run(t, params)
}

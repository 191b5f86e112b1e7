// Package all links every kind of capability, the screen, the server and PostgreSQL into a program, as the
// command stone does:
//
//	import _ "github.com/stonelayer/stone/cli/all"
//
// It costs about 35 modules. Import call/cel, call/mcp, call/sat, call/uci or
// cli/screen where a program needs only some of them.
package all

import (
	_ "github.com/stonelayer/stone/call/cel"
	_ "github.com/stonelayer/stone/call/mcp"
	_ "github.com/stonelayer/stone/call/sat"
	_ "github.com/stonelayer/stone/call/uci"
	_ "github.com/stonelayer/stone/cli/screen"
	_ "github.com/stonelayer/stone/cli/serve"
	_ "github.com/stonelayer/stone/journal/postgres"
)

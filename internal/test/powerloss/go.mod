module github.com/stonelayer/stone/internal/test/powerloss

go 1.26.5

replace (
	github.com/stonelayer/stone => ../../..
	modernc.org/sqlite => ./driver
)

require (
	github.com/ncruces/go-sqlite3 v0.35.6
	github.com/stonelayer/stone v0.0.0
	modernc.org/sqlite v1.60.1
)

require (
	github.com/dlclark/regexp2/v2 v2.12.0 // indirect
	github.com/go-json-experiment/json v0.0.0-20260820222146-c27c302e5fc3 // indirect
	github.com/ncruces/go-sqlite3-wasm/v6 v6.3.35304 // indirect
	github.com/ncruces/julianday v1.0.0 // indirect
	github.com/santhosh-tekuri/jsonschema/v6 v6.0.3 // indirect
	golang.org/x/sys v0.49.0 // indirect
	golang.org/x/text v0.43.0 // indirect
)

package fs_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"

	"github.com/stonelayer/stone/agent"
	"github.com/stonelayer/stone/tool/fs"
)

func Example() {
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	root := fs.Root{Dir: dir, Only: []string{"src"}}
	if err := os.Mkdir(dir+"/src", 0o777); err != nil {
		fmt.Println(err)
		return
	}
	write, edit, read := fs.Write(root), fs.Edit(root), fs.Read(root) // for the Use list of an agent

	for _, call := range []struct {
		agent.Middleware
		input string
	}{
		{write, `{"path":"src/a.txt","content":"one\ntwo\n"}`},
		{edit, `{"path":"src/a.txt","old_string":"two","new_string":"three"}`},
		{read, `{"path":"src/a.txt","offset":2}`},
		{write, `{"path":"src/../../a.txt","content":""}`},
	} {
		result, err := call.Tool.Run(context.Background(), json.RawMessage(call.input))
		fmt.Println(result.Text, err)
	}
	// Output:
	// wrote 8 bytes to src/a.txt <nil>
	// edited src/a.txt at line 2 <nil>
	// three
	//  <nil>
	//  "src/../../a.txt" leads out of the directory in which files may be used: name a path below it, as "a.txt"
}

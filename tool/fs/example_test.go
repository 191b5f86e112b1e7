package fs_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"

	"github.com/stonelayer/stone/agent"
	"github.com/stonelayer/stone/tool"
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

// A tool of your own can use the files of a directory, and no others.
func ExampleRoot_Resolve() {
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	if err := os.WriteFile(dir+"/a.txt", []byte("one\ntwo\n"), 0o666); err != nil {
		fmt.Println(err)
		return
	}

	root := fs.Root{Dir: dir}
	type input struct {
		Path string `json:"path"`
	}
	count := tool.Func("count_lines", "Counts the lines of a file.", func(ctx context.Context, in input) (int, error) {
		dir, name, err := root.Resolve(ctx, in.Path)
		if err != nil {
			return 0, err
		}
		defer dir.Close()
		text, err := dir.ReadFile(name)
		return strings.Count(string(text), "\n"), err
	})
	for _, path := range []string{"a.txt", "../a.txt"} {
		result, err := count.Tool.Run(context.Background(), json.RawMessage(`{"path":"`+path+`"}`))
		fmt.Println(result.Text, err)
	}
	// Output:
	// 2 <nil>
	//  "../a.txt" leads out of the directory in which files may be used: name a path below it, as "a.txt"
}

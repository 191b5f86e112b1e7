package agent_test

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/agent"
	"github.com/stonelayer/stone/event"
	"github.com/stonelayer/stone/internal/test/need"
	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/llm/openai"
)

// manyServer is set in the process that serves TestManyAgents.
const manyServer = "STONE_TEST_MANY_SERVER"

// manyWords is the number of words that the server sends before it pauses.
const manyWords = 400

// TestManyAgents measures the memory of a thousand agents in the middle of answers of
// 4 KB from one server, with both detectors, over TCP. STONE_MANY sets another number.
// The server is another process, so that its memory does not count.
func TestManyAgents(t *testing.T) {
	if os.Getenv(manyServer) != "" {
		serveMany(t)
		return
	}
	need.Time(t)
	n := 1000
	if s := os.Getenv("STONE_MANY"); s != "" {
		fmt.Sscan(s, &n)
	}
	address, release := startMany(t)
	m := openai.New(openai.Config{Model: "m", URL: "http://" + address, Key: "test-key", Repetition: llm.NewWatcher,
		Timeouts: llm.Timeouts{Silence: time.Hour}}) // the first agents wait for the last one
	talk := agent.New("talk", note, m, agent.Config{User: agent.Say("hi")})
	before := weigh()
	var half, done sync.WaitGroup
	half.Add(n)
	for i := range n {
		done.Go(func() {
			words := 0
			reached := sync.OnceFunc(half.Done)
			defer reached()
			watch := event.Func(event.LevelDelta, func(e event.Event) {
				if d, ok := e.Data.(event.Delta); ok && d.Kind == event.Text {
					if words++; words == manyWords {
						reached()
					}
				}
			})
			if _, err := stone.Run(t.Context(), talk, stone.Config{Watch: watch}); err != nil {
				t.Errorf("agent %d: %v", i, err)
			}
		})
	}
	half.Wait()
	each := (weigh() - before) / n
	release()
	done.Wait()
	t.Logf("%d agents, %d KB each", n, each>>10)
	if each > 80<<10 && !raceDetector {
		t.Errorf("an agent uses %d KB, want at most 80", each>>10)
	}
}

// weigh returns the bytes of live objects and of stacks. A collection halves large
// stacks, and running goroutines allocate meanwhile: the least of several measurements
// counts.
func weigh() int {
	least := math.MaxInt
	for range 6 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		least = min(least, int(m.HeapAlloc+m.StackInuse))
	}
	return least
}

// startMany starts the server. release makes it finish all answers.
func startMany(t *testing.T) (address string, release func()) {
	cmd := exec.Command(os.Args[0], "-test.run=^TestManyAgents$")
	cmd.Env = append(os.Environ(), manyServer+"=1")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close()
		cmd.Wait()
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(line), func() { io.WriteString(in, "go\n") }
}

// serveMany sends 400 words to each client, continues at the first line of its input,
// and ends with the input.
func serveMany(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	fmt.Println(l.Addr())
	var b strings.Builder
	b.WriteString("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n")
	for i := range manyWords {
		fmt.Fprintf(&b, "data: {\"id\":\"c\",\"model\":\"m\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\" word-%04d\"}}]}\n\n", i*37%9973)
	}
	head, released := b.String(), make(chan struct{})
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				if _, err := conn.Read(make([]byte, 1024)); err != nil {
					return
				}
				io.WriteString(conn, head)
				<-released
				io.WriteString(conn, "data: [DONE]\n\n")
			}()
		}
	}()
	input := bufio.NewReader(os.Stdin)
	if _, err := input.ReadString('\n'); err == nil {
		close(released)
		io.Copy(io.Discard, input)
	}
}

package sandbox_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/stonelayer/stone/internal/test/boxtest"
	"github.com/stonelayer/stone/sandbox"
	"golang.org/x/sys/unix"
)

// key is what an attack must not find. The program that starts the attack has it in
// its environment, its memory and an open file, and never passes it on.
const key = "key-7f3a91c2"

// inMemory is the key in the memory of the host, at an address that the attack knows.
var inMemory = []byte("memory-" + key)

func init() {
	roles["host"] = host
	for name, attack := range attacks {
		roles[name] = func() error { return attack(hostPID()) }
	}
}

func hostPID() int {
	pid, err := strconv.Atoi(os.Getenv("HOST"))
	if err != nil {
		panic(err)
	}
	return pid
}

// attacks return nil if they succeed.
var attacks = map[string]func(pid int) error{
	"environ": func(pid int) error {
		return readAny("KEY="+key, "/proc/[0-9]*/environ", "/proc/[0-9]*/task/[0-9]*/environ")
	},
	"descriptors":     func(pid int) error { return readAny(key, fmt.Sprintf("/proc/%d/fd/*", pid)) },
	"own descriptors": func(int) error { return readAny(key, "/proc/self/fd/*") },
	"cwd and root":    func(pid int) error { return readAny(key, fmt.Sprintf("/proc/%d/cwd/secret", pid)) },
	"mem": func(pid int) error {
		f, err := os.Open(fmt.Sprintf("/proc/%d/mem", pid))
		if err != nil {
			return err
		}
		defer f.Close()
		b := make([]byte, len(inMemory))
		_, err = f.ReadAt(b, address())
		return found(b, err)
	},
	"process_vm_readv": func(pid int) error {
		b := make([]byte, len(inMemory))
		local := []unix.Iovec{{Base: &b[0], Len: uint64(len(b))}}
		_, err := unix.ProcessVMReadv(pid, local, []unix.RemoteIovec{{Base: uintptr(address()), Len: len(b)}}, 0)
		return found(b, err)
	},
	"ptrace attach": func(pid int) error { return trace(pid, unix.PTRACE_ATTACH) },
	"ptrace seize":  func(pid int) error { return trace(pid, unix.PTRACE_SEIZE) },
	"pidfd_getfd": func(pid int) error {
		p, err := unix.PidfdOpen(pid, 0)
		if err != nil {
			return err
		}
		var last error
		for fd := range 32 {
			got, err := unix.PidfdGetfd(p, fd, 0)
			if last = err; err == nil {
				return fmt.Errorf("pidfd_getfd gives %d: %w", got, errWon)
			}
		}
		return last
	},
	"signal": func(pid int) error { return unix.Kill(pid, unix.SIGUSR1) },
	"pidfd signal": func(pid int) error {
		p, err := unix.PidfdOpen(pid, 0)
		if err != nil {
			return err
		}
		return unix.PidfdSendSignal(p, unix.SIGUSR1, nil, 0)
	},
	"prlimit": func(pid int) error {
		return unix.Prlimit(pid, unix.RLIMIT_CORE, &unix.Rlimit{Cur: 4096, Max: 4096}, nil)
	},
	"affinity": func(pid int) error {
		var one unix.CPUSet
		one.Set(0)
		return unix.SchedSetaffinity(pid, &one)
	},
	"priority":         func(pid int) error { return unix.Setpriority(unix.PRIO_PROCESS, pid, 19) },
	"priority of user": func(int) error { return unix.Setpriority(unix.PRIO_USER, os.Getuid(), 19) },
	"unshare":          func(int) error { return unix.Unshare(unix.CLONE_NEWUSER) },
	"unshare pid":      func(int) error { return unix.Unshare(unix.CLONE_NEWPID) },
	"setns": func(pid int) error {
		p, err := unix.PidfdOpen(pid, 0)
		if err != nil {
			return err
		}
		return unix.Setns(p, unix.CLONE_NEWNS)
	},
	"clone": func(int) error {
		c := exec.Command("/bin/true")
		c.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWUSER | unix.CLONE_NEWPID}
		return c.Run()
	},
	"clone3": func(int) error {
		// With arguments that are refused for what they are, where the call exists.
		_, _, errno := unix.Syscall(unix.SYS_CLONE3, 0, 0, 0)
		if errno == unix.ENOSYS {
			return errno
		}
		return fmt.Errorf("clone3 exists (%w): %w", errno, errWon)
	},
	"io_uring": func(int) error {
		var params [120]byte
		_, _, errno := unix.Syscall(unix.SYS_IO_URING_SETUP, 1, uintptr(unsafe.Pointer(&params)), 0)
		return orNil(errno)
	},
	"keyring": func(int) error {
		_, err := unix.KeyctlGetKeyringID(unix.KEY_SPEC_USER_KEYRING, true)
		return err
	},
	"chmod":    func(int) error { return os.Chmod(os.Getenv("OUT"), 0o777) },
	"chown":    func(int) error { return os.Lchown(os.Getenv("OUT"), os.Getuid(), os.Getgid()) },
	"setxattr": func(int) error { return unix.Setxattr(os.Getenv("OUT"), "user.stone", []byte("x"), 0) },
	"chmod 2": func(int) error {
		return unix.Fchmodat(unix.AT_FDCWD, os.Getenv("OUT"), 0o777, unix.AT_SYMLINK_NOFOLLOW)
	},
	// What it makes in its own directory, the host finds there: see special.
	"suid by fchmod": func(int) error {
		f, err := os.Create("special")
		if err != nil {
			return err
		}
		return unix.Fchmod(int(f.Fd()), 0o4755)
	},
	"sgid by chmod": func(int) error {
		return errors.Join(os.WriteFile("special", nil, 0o700), unix.Chmod("special", 0o2755))
	},
	"suid by open": func(int) error {
		_, err := unix.Open("special", unix.O_CREAT|unix.O_WRONLY, 0o6755)
		return err
	},
	"suid by openat2": func(int) error {
		_, err := unix.Openat2(unix.AT_FDCWD, "special", &unix.OpenHow{Flags: unix.O_CREAT | unix.O_WRONLY, Mode: 0o4755})
		return err
	},
	"suid by mknod": func(int) error { return unix.Mknod("special", unix.S_IFREG|0o4755, 0) },
	"times": func(int) error {
		return os.Chtimes(filepath.Join(os.Getenv("OUT"), "secret"), time.Unix(1, 0), time.Unix(1, 0))
	},
	"tcp":       func(int) error { return say("tcp", os.Getenv("TCP")) },
	"udp":       func(int) error { return say("udp", os.Getenv("UDP")) },
	"unix":      func(int) error { return say("unix", os.Getenv("SOCKET")) },
	"unixgram":  func(int) error { return say("unixgram", os.Getenv("DATAGRAM")) },
	"abstract":  func(int) error { return say("unix", os.Getenv("ABSTRACT")) },
	"pair":      func(int) error { return sendFromPair(unix.AF_UNIX, os.Getenv("DATAGRAM")) },
	"near unix": func(int) error { return say("unix", "near.sock") },
}

// errWon is the success of an attack that returns details.
var errWon = errors.New("the attack succeeds")

func orNil(errno syscall.Errno) error {
	if errno != 0 {
		return errno
	}
	return nil
}

func found(b []byte, err error) error {
	if err == nil && !strings.Contains(string(b), key) {
		err = errors.New("read something else")
	}
	return err
}

func address() int64 {
	n, err := strconv.ParseInt(os.Getenv("ADDRESS"), 10, 64)
	if err != nil {
		panic(err)
	}
	return n
}

func trace(pid, how int) error {
	runtime.LockOSThread()
	tasks, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	if err != nil {
		return err
	}
	for _, task := range tasks {
		tid, err := strconv.Atoi(task.Name())
		if err != nil {
			return err
		}
		if _, _, errno := unix.Syscall6(unix.SYS_PTRACE, uintptr(how), uintptr(tid), 0, 0, 0, 0); errno == 0 {
			return nil
		}
	}
	return errors.New("no thread can be traced")
}

// readAny reads the files of patterns and succeeds if one has the text.
func readAny(text string, patterns ...string) error {
	for _, pattern := range patterns {
		files, err := filepath.Glob(pattern)
		if err != nil {
			return err
		}
		for _, file := range files {
			if info, err := os.Stat(file); err != nil || !info.Mode().IsRegular() {
				continue // of a pipe nothing could be read
			}
			data, err := os.ReadFile(file)
			if err == nil && strings.Contains(string(data), text) && !strings.HasPrefix(file, "/proc/self/fd/0") {
				return nil
			}
		}
	}
	return errors.New("no file has the key")
}

func say(network, address string) error {
	c, err := net.DialTimeout(network, address, time.Second)
	if err != nil {
		return err
	}
	defer c.Close()
	_, err = c.Write([]byte(key))
	return err
}

func sendFromPair(family int, path string) error {
	fds, err := unix.Socketpair(family, unix.SOCK_DGRAM, 0)
	if err != nil {
		return err
	}
	return unix.Sendto(fds[0], []byte(key), 0, &unix.SockaddrUnix{Name: path})
}

// host is a program with a key that runs an attack in a sandbox. It does so several
// times where what is exposed may depend on the thread.
func host() error {
	secret, err := os.Open(filepath.Join(os.Getenv("OUT"), "secret"))
	if err != nil {
		return err
	}
	if err := unix.Dup2(int(secret.Fd()), 9); err != nil { // not closed by exec
		return err
	}
	p := sandbox.Policy{Writable: []string{os.Getenv("WORK")}, Method: sandbox.Method(os.Getenv("METHOD")), Network: os.Getenv("NETWORK") != ""}
	var won []string
	times := 1
	if strings.Contains("environ, ptrace attach", os.Getenv("ATTACK")) {
		times = 4
	}
	for range times {
		c := sandbox.Command(context.Background(), p, os.Args[0])
		c.Dir = os.Getenv("WORK")
		c.Env = []string{"SANDBOX_ROLE=" + os.Getenv("ATTACK"), fmt.Sprint("HOST=", os.Getpid()), fmt.Sprintf("ADDRESS=%d", uintptr(unsafe.Pointer(&inMemory[0]))),
			"OUT", "TCP", "UDP", "SOCKET", "DATAGRAM", "ABSTRACT"}
		out, err := c.Output(1 << 20)
		switch exit := (*sandbox.ExitError)(nil); {
		case err == nil || strings.Contains(out, errWon.Error()):
			won = append(won, out)
		case !errors.As(err, &exit) || exit.Code != 1:
			return fmt.Errorf("the attack did not take place: %w: %s", err, out)
		}
	}
	if len(won) > 0 {
		return fmt.Errorf("%d of %d: %s: %w", len(won), times, won[0], errWon)
	}
	return nil
}

// attack starts a host that starts an attack, and returns the host's output.
func attack(t *testing.T, m sandbox.Method, w world, name string, env ...string) (string, error) {
	c := exec.CommandContext(t.Context(), os.Args[0])
	c.Env = append(os.Environ(), append(env, "SANDBOX_ROLE=host", "KEY="+key, "ATTACK="+name, "METHOD="+string(m), "WORK="+w.work, "OUT="+w.outside)...)
	c.Dir = w.outside
	out, err := c.CombinedOutput()
	return string(out), err
}

// No attack on the program that runs a command succeeds. Without confinement they do,
// so they are not merely broken.
func TestAttacksOnTheHost(t *testing.T) {
	for _, m := range []sandbox.Method{sandbox.Bubblewrap, sandbox.Landlock, sandbox.Unconfined} {
		t.Run(string(m), func(t *testing.T) {
			boxtest.Need(t, m)
			for name := range attacks {
				if m == sandbox.Unconfined && mayFail[name] {
					continue
				}
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					w := newWorld(t)
					if err := os.WriteFile(filepath.Join(w.outside, "secret"), []byte(key), 0o600); err != nil {
						t.Fatal(err)
					}
					heard, env := listen(t, w)
					before := modes(t, w.outside)
					out, err := attack(t, m, w, name, env...)
					got := heard()
					won := err != nil
					if name == "udp" { // sending a datagram into an empty network is no error
						won = got != ""
					}
					if m == sandbox.Unconfined {
						if !won {
							t.Error("the attack fails without confinement too, so it shows nothing")
						}
						return
					}
					if won {
						t.Errorf("%v: %s", err, out)
					}
					if got != "" {
						t.Errorf("a listener outside received %q", got)
					}
					if info, err := os.Stat(filepath.Join(w.work, "special")); err == nil && info.Mode()&(fs.ModeSetuid|fs.ModeSetgid) != 0 {
						t.Errorf("it left a file with the mode %v", info.Mode())
					}
					if after := modes(t, w.outside); after != before {
						t.Errorf("files outside were %s, are %s", before, after)
					}
				})
			}
		})
	}
}

// mayFail are attacks that need not succeed even without confinement: their target
// depends on the user and the kernel, is closed to all users, or would stop the host.
var mayFail = map[string]bool{
	"own descriptors": true, "environ": true, "descriptors": true, "cwd and root": true, "mem": true, "process_vm_readv": true,
	"ptrace attach": true, "ptrace seize": true, "pidfd_getfd": true, "unshare": true, "unshare pid": true, "setns": true, "clone": true,
	"io_uring": true, "setxattr": true, "priority of user": true, "chmod 2": true, "chown": true, "near unix": true,
}

// listen opens servers outside the sandbox and returns the data they received.
func listen(t *testing.T, w world) (heard func() string, env []string) {
	t.Helper()
	got := make(chan string, 64)
	stream := func(network, address string) net.Listener {
		l, err := net.Listen(network, address)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { l.Close() })
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				b := make([]byte, 64)
				n, _ := c.Read(b) // an error means no data; the connection alone is recorded
				c.Close()
				got <- network + " " + string(b[:n])
			}
		}()
		return l
	}
	packet := func(network, address string) net.PacketConn {
		c, err := net.ListenPacket(network, address)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		go func() {
			for {
				b := make([]byte, 64)
				n, _, err := c.ReadFrom(b)
				if err != nil {
					return
				}
				got <- network + " " + string(b[:n])
			}
		}()
		return c
	}
	abstract := fmt.Sprintf("@stone-%d-%p", os.Getpid(), t)
	tcp, udp := stream("tcp", "127.0.0.1:0"), packet("udp", "127.0.0.1:0")
	all := []net.Addr{tcp.Addr(), udp.LocalAddr(),
		stream("unix", filepath.Join(w.outside, "s.sock")).Addr(),
		stream("unix", filepath.Join(w.work, "near.sock")).Addr(),
		stream("unix", abstract).Addr(),
		packet("unixgram", filepath.Join(w.outside, "d.sock")).LocalAddr()}
	return func() (first string) {
			// Each listener takes one after the other, so what comes before its end mark is all.
			const end = "end of the attack"
			for _, a := range all {
				c, err := net.Dial(a.Network(), a.String())
				if err == nil {
					_, err = c.Write([]byte(end))
					err = errors.Join(err, c.Close())
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			for ends := 0; ends < len(all); {
				if s := <-got; strings.HasSuffix(s, end) {
					ends++
				} else if first == "" {
					first = s
				}
			}
			return first
		}, []string{"TCP=" + tcp.Addr().String(), "UDP=" + udp.LocalAddr().String(), "ABSTRACT=" + abstract,
			"SOCKET=" + filepath.Join(w.outside, "s.sock"), "DATAGRAM=" + filepath.Join(w.outside, "d.sock")}
}

// modes describes the files below a directory.
func modes(t *testing.T, dir string) string {
	var b strings.Builder
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err == nil {
			stat := info.Sys().(*syscall.Stat_t)
			fmt.Fprintf(&b, "%s %v %d %d;", path, info.Mode(), stat.Ctim.Sec, stat.Ctim.Nsec)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
	return b.String()
}

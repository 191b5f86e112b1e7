package mcp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/stonelayer/stone/effect"
	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/sandbox"
	"github.com/stonelayer/stone/tool"
)

// A Config contains the address of a server and the rules for its tools. Exactly one of Command, URL and Transport must be set.
type Config struct {
	// Name is the server's name in errors. Empty means the base name of the command or the host of the URL.
	Name string

	// Command contains the program and its arguments. All users of the machine can see the arguments, so pass secrets in Env.
	Command []string
	// Dir is the working directory, which the command may read. Empty means a separate temporary directory or, for an unconfined
	// command, the current directory.
	Dir string
	// Sandbox grants the command access beyond the system's programs and Dir. The zero value grants nothing more: no other files
	// and no network. Set Sandbox.Method to sandbox.Unconfined if the server may do anything.
	Sandbox sandbox.Policy
	// Env contains environment variables for the command. A few others that programs need, such as PATH, are always set.
	Env map[string]llm.Secret

	// URL is the endpoint of a server that is reached over streamable HTTP.
	URL llm.Secret
	// Header is sent with every request to the URL's host, and to no other host.
	Header map[string]llm.Secret
	// OAuth, if not nil, authorizes the requests with the account of a user who has logged in.
	OAuth *OAuth
	// Client makes the requests; nil means a new client. Unless Client has a CheckRedirect, redirects to another server are not
	// followed. Its Timeout also limits the streams that answer calls, so it is best left at zero.
	Client *http.Client

	// Transport returns a connection to a server that is reached in another way, such as a server in the same program. It is
	// called each time the server is started.
	Transport func(context.Context) (sdk.Transport, error)

	// Protocol is the protocol version with which the server is started, such as "2025-11-25". If it is empty, the version is
	// detected, which takes seconds if the server ignores the first message of newer versions. For a URL, "2024-11-05" means the
	// older HTTP+SSE transport.
	Protocol string

	// Prefix, such as "github_", is prepended to tool names to distinguish the tools of several servers.
	Prefix string
	// Effects lists the effects of the tools. In addition, the tools have the effect process if the server is a command,
	// otherwise net.
	Effects []string
	// Approver decides on every call of a tool that is not listed in Harmless. With the zero Approver, all calls run.
	Approver tool.Approver
	// Harmless lists, by the server's names, tools that change nothing. Their calls run in parallel and without approval, and a
	// call is repeated if the first attempt was lost. The server's own annotations are not trusted.
	Harmless []string

	// Accept is called with each new or changed definition of a tool. If it returns an error, the definition is rejected. If
	// Accept is nil, the first definition of each tool is accepted and any change is rejected. See [Pinned].
	Accept func([]Definition) error

	// StartTimeout limits how long the server may take to start, including attempts with several protocol versions and listing the
	// tools; zero means one minute. Timeout limits the duration of a call; zero means two minutes.
	StartTimeout, Timeout time.Duration
	// Idle is how long the server may be without calls before it is stopped; the next call starts it again. Zero means that the
	// server keeps running or, with the function Tools, that it is stopped after one minute.
	Idle time.Duration

	// MaxText is the maximum size, in bytes, of the result text that the model receives; zero means 64 KiB. The agent keeps
	// longer texts; see agent.Tool. MaxData is the maximum size, in bytes, of a result's media and the data in its Meta;
	// zero means 10,000,000. Parts beyond MaxData are replaced with a note.
	MaxText, MaxData int

	// Logger receives messages about data that the protocol library ignores, such as tools with annotations that it cannot parse.
	// If Logger is nil, the messages are discarded.
	Logger *slog.Logger

	login auth.OAuthHandler // used by Login in place of OAuth
}

const (
	defaultStartTimeout = time.Minute
	defaultTimeout      = 2 * time.Minute
	defaultIdle         = time.Minute
	defaultMaxData      = 10_000_000
)

// maxFrame is the maximum size of a message from the server.
const maxFrame = 16 << 20

// complete returns the configuration with defaults filled in, or an error.
func (c Config) complete() (Config, error) {
	var ways int
	if len(c.Command) > 0 {
		ways++
		c.Name = cmp.Or(c.Name, filepath.Base(c.Command[0]))
	}
	if c.URL != "" {
		ways++
		u, err := url.Parse(string(c.URL))
		if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
			// The error from url.Parse would show the URL.
			return c, errors.New("mcp: Config.URL is not an http or https URL with a host")
		}
		c.Name = cmp.Or(c.Name, u.Host)
	}
	if c.Transport != nil {
		ways++
		c.Name = cmp.Or(c.Name, "server")
	}
	if ways != 1 {
		return c, fmt.Errorf("mcp: the Config sets %d of Command, URL and Transport: set one", ways)
	}
	if c.OAuth != nil && (c.URL == "" || c.OAuth.Load == nil || c.OAuth.Save == nil) {
		return c, fmt.Errorf("mcp: the OAuth of %q needs URL, and Load and Save to keep the tokens", c.Name)
	}
	if c.Protocol != "" && !slices.Contains(versions, c.Protocol) {
		return c, fmt.Errorf("mcp: the Config of %q has an unknown Protocol %q: want one of %s", c.Name, c.Protocol, strings.Join(versions, ", "))
	}
	if c.StartTimeout < 0 || c.Timeout < 0 || c.Idle < 0 || c.MaxText < 0 || c.MaxData < 0 {
		return c, fmt.Errorf("mcp: the Config of %q has a negative limit: want zero for the default", c.Name)
	}
	c.StartTimeout = cmp.Or(c.StartTimeout, defaultStartTimeout)
	c.Timeout = cmp.Or(c.Timeout, defaultTimeout)
	c.MaxData = cmp.Or(c.MaxData, defaultMaxData)
	return c, nil
}

// Needs returns the effects of the tools: Effects and the effect needed to reach the server, process or net.
func (c Config) Needs() []string {
	reach := effect.Net
	if len(c.Command) > 0 {
		reach = effect.Process
	}
	return append([]string{reach}, c.Effects...)
}

package servertest

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"strconv"
	"testing"
	"time"

	"go.temporal.io/sdk/client"
	"go.temporal.io/server/common/cluster"
	"go.temporal.io/server/common/config"
	"go.temporal.io/server/common/log"
	"go.temporal.io/server/common/membership/static"
	sqliteplugin "go.temporal.io/server/common/persistence/sql/sqlplugin/sqlite"
	"go.temporal.io/server/common/primitives"
	"go.temporal.io/server/schema/sqlite"
	temporalserver "go.temporal.io/server/temporal"
)

// A server in a process of its own keeps its state in a file, so that it can be killed.

const serverNamespace = "killed"

// serving is an environment variable. If it is set, the process is a server.
const serving = "STONE_SERVING"

// serve runs a server on four ports from STONE_SERVER_PORT, with its state in STONE_SERVER_DB.
func serve() error {
	file := os.Getenv("STONE_SERVER_DB")
	port, err := strconv.Atoi(os.Getenv("STONE_SERVER_PORT"))
	if err != nil {
		return err
	}
	store := &config.SQL{PluginName: sqliteplugin.PluginName, DatabaseName: file, ConnectAttributes: map[string]string{
		"mode": "rwc", "_journal_mode": "wal", "_synchronous": "normal",
	}}
	address := fmt.Sprintf("127.0.0.1:%d", port)
	cfg := &config.Config{
		Global: config.Global{Membership: config.Membership{MaxJoinDuration: 30 * time.Second, BroadcastAddress: "127.0.0.1"}},
		Persistence: config.Persistence{
			DefaultStore: sqliteplugin.PluginName, VisibilityStore: sqliteplugin.PluginName, NumHistoryShards: 1,
			DataStores: map[string]config.DataStore{sqliteplugin.PluginName: {SQL: store}},
		},
		ClusterMetadata: &cluster.Config{FailoverVersionIncrement: 10, MasterClusterName: "active", CurrentClusterName: "active",
			ClusterInformation: map[string]cluster.ClusterInformation{"active": {Enabled: true, InitialFailoverVersion: 1, RPCAddress: address}}},
		DCRedirectionPolicy: config.DCRedirectionPolicy{Policy: "noop"},
		Services:            map[string]config.Service{},
		Archival:            config.Archival{History: config.HistoryArchival{State: "disabled"}, Visibility: config.VisibilityArchival{State: "disabled"}},
		NamespaceDefaults: config.NamespaceDefaults{Archival: config.ArchivalNamespaceDefaults{
			History: config.HistoryArchivalNamespaceDefaults{State: "disabled"}, Visibility: config.VisibilityArchivalNamespaceDefaults{State: "disabled"}}},
		PublicClient: config.PublicClient{HostPort: address},
	}
	hosts := map[primitives.ServiceName]static.Hosts{}
	for i, name := range []primitives.ServiceName{primitives.FrontendService, primitives.HistoryService, primitives.MatchingService, primitives.WorkerService} {
		cfg.Services[string(name)] = config.Service{RPC: config.RPC{GRPCPort: port + i, MembershipPort: port + 4 + i, BindOnIP: "127.0.0.1"}}
		hosts[name] = static.SingleLocalHost(fmt.Sprintf("127.0.0.1:%d", port+i))
	}
	if _, err := os.Stat(file); errors.Is(err, fs.ErrNotExist) {
		if err := sqlite.SetupSchema(store); err != nil {
			return err
		}
		ns, err := sqlite.NewNamespaceConfig("active", serverNamespace, false, nil)
		if err != nil {
			return err
		}
		if err := sqlite.CreateNamespaces(store, ns); err != nil {
			return err
		}
	}
	s, err := temporalserver.NewServer(temporalserver.WithConfig(cfg), temporalserver.ForServices(temporalserver.DefaultServices),
		temporalserver.WithStaticHosts(hosts), temporalserver.WithLogger(log.NewNoopLogger()), temporalserver.InterruptOn(temporalserver.InterruptCh()))
	if err != nil {
		return err
	}
	return s.Start()
}

// launchServer starts a server and waits until it answers.
func launchServer(t *testing.T, env []string, port int) *process {
	t.Helper()
	p := launch(t, "server", env)
	for deadline := time.Now().Add(time.Minute); ; {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		c, err := client.DialContext(ctx, client.Options{HostPort: fmt.Sprintf("127.0.0.1:%d", port), Namespace: serverNamespace, Logger: quiet})
		if err == nil {
			_, err = c.CountActivities(ctx, client.CountActivitiesOptions{})
			c.Close()
		}
		cancel()
		if err == nil {
			return p
		}
		select {
		case <-p.ended:
			t.Fatalf("the server ended: %v", p.err)
		case <-time.After(200 * time.Millisecond):
		}
		if time.Now().After(deadline) {
			t.Fatalf("the server does not answer: %v", err)
		}
	}
}

// freePorts returns the first of some ports in a row that were free, below those that the
// system gives to clients.
func freePorts(t *testing.T, n int) int {
	t.Helper()
	for first := 20000; first < 30000; first += n {
		free := 0
		for i := range n {
			l, err := net.Listen("tcp", "127.0.0.1:"+strconv.Itoa(first+i))
			if err != nil {
				break
			}
			l.Close()
			free++
		}
		if free == n {
			return first
		}
	}
	t.Fatal("no free ports")
	return 0
}

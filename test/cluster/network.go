package cluster

import (
	"context"
	"crypto/sha256"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// Addresses are in 198.18.0.0/15, which is reserved for network benchmarks (RFC 2544). So they conflict
// neither with a LAN nor with a container engine:
//
//	198.18.<slot>.1        this machine: API server and CoreDNS
//	198.18.<slot>.<10+i>   node i
//	198.19.<32*slot+i>.0   its pods
const (
	maxSlots = 8
	maxNodes = 31
)

// node has the values that are derived from a node's number.
type node struct {
	number   int
	name     string
	address  string
	podRange string
	zone     string
	link     string // the host's end of its veth pair
	dir      string
	cgroup   string
}

func (c *Cluster) nodes() []node {
	var nodes []node
	for i := 1; i <= c.state.Nodes; i++ {
		name := fmt.Sprintf("node-%d", i)
		nodes = append(nodes, node{
			number:   i,
			name:     name,
			address:  fmt.Sprintf("198.18.%d.%d", c.state.Slot, 10+i),
			podRange: fmt.Sprintf("198.19.%d.0/24", 32*c.state.Slot+i),
			zone:     "zone-" + string(rune('a'+(i-1)%3)),
			link:     fmt.Sprintf("%sn%d", linkPrefix(c.state.Name), i),
			dir:      c.path("nodes", name),
			cgroup:   filepath.Join(cgroupOf(c.state.Name), name),
		})
	}
	return nodes
}

func (c *Cluster) node(name string) (node, error) {
	for _, n := range c.nodes() {
		if n.name == name {
			return n, nil
		}
	}
	return node{}, fmt.Errorf("cluster %s has no node %q, only %s", c.state.Name, name, strings.Join(c.Nodes(), ", "))
}

// Nodes returns the names of the nodes.
func (c *Cluster) Nodes() []string {
	var names []string
	for _, n := range c.nodes() {
		names = append(names, n.name)
	}
	return names
}

func (c *Cluster) podRange() string { return fmt.Sprintf("198.19.%d.0/19", 32*c.state.Slot) }
func (c *Cluster) bridge() string   { return linkPrefix(c.state.Name) + "br" }

// mac returns the hardware address of a node, or of the bridge for number 0. With an address that
// changes at every start, neighbors would continue to send to the old one. Without a fixed address, the
// bridge takes that of one of its nodes, which may later be powered off.
func (c *Cluster) mac(number int) string {
	sum := sha256.Sum256([]byte(c.state.Name))
	return fmt.Sprintf("02:%02x:%02x:%02x:00:%02x", sum[0], sum[1], sum[2], number)
}

// linkPrefix returns the prefix of the names of a cluster's links. A link's name has at most 15
// characters, and a cluster's name can be longer.
func linkPrefix(cluster string) string {
	sum := sha256.Sum256([]byte(cluster))
	return fmt.Sprintf("so%x", sum[:3])
}

// links returns the cluster's links on this machine, recorded or not.
func links(cluster string) []string {
	var found []string
	interfaces, _ := net.Interfaces()
	for _, i := range interfaces {
		if strings.HasPrefix(i.Name, linkPrefix(cluster)) {
			found = append(found, i.Name)
		}
	}
	return found
}

// chooseAddress chooses the first address range that is not used on this machine.
func (c *Cluster) chooseAddress(ctx context.Context) error {
	if c.state.Nodes == 0 {
		return nil
	}
	// Two clusters that boot in parallel must not choose the same range.
	unlock, err := lock(ctx, filepath.Join(filepath.Dir(c.dir), "slots.lock"))
	if err != nil {
		return err
	}
	defer unlock()
	taken := map[string]bool{}
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		return err
	}
	for _, a := range addresses {
		if ip, ok := a.(*net.IPNet); ok {
			taken[ip.IP.String()] = true
		}
	}
	others, _ := filepath.Glob(filepath.Join(filepath.Dir(c.dir), "*", stateFile))
	for _, other := range others {
		if s, err := readState(filepath.Dir(other)); err == nil {
			taken[s.Address] = true
		}
	}
	for slot := range maxSlots {
		address := fmt.Sprintf("198.18.%d.1", slot)
		if !taken[address] {
			c.state.Slot, c.state.Address = slot, address
			return c.save()
		}
	}
	return fmt.Errorf("all %d address ranges are used by other clusters; see %s", maxSlots, filepath.Dir(c.dir))
}

// makeBridge creates the bridge that connects the nodes and this machine.
func (c *Cluster) makeBridge(ctx context.Context) error {
	if _, err := os.Stat("/proc/sys/net/bridge/bridge-nf-call-iptables"); err != nil {
		// Built into some kernels, a module of most.
		if err := run(ctx, "modprobe", "br_netfilter"); err != nil {
			return err
		}
	}
	bridge := c.bridge()
	if err := run(ctx, "ip", "link", "add", bridge, "address", c.mac(0), "type", "bridge"); err != nil {
		return err
	}
	if err := run(ctx, "ip", "address", "add", c.state.Address+"/24", "dev", bridge); err != nil {
		return err
	}
	if err := run(ctx, "ip", "link", "set", bridge, "up"); err != nil {
		return err
	}
	for _, n := range c.nodes() {
		// For webhooks: the API server on this machine dials pods.
		if err := run(ctx, "ip", "route", "add", n.podRange, "via", n.address, "dev", bridge); err != nil {
			return err
		}
	}
	// A container engine that filters bridged traffic drops unknown traffic.
	return run(ctx, append([]string{"iptables", "-w", "-I"}, forwardRule(bridge)...)...)
}

func forwardRule(bridge string) []string {
	return []string{"FORWARD", "-i", bridge, "-o", bridge, "-j", "ACCEPT"}
}

// plug connects a node to the bridge. pid is its first process.
func (c *Cluster) plug(ctx context.Context, n node, pid int) error {
	// A link that outlived its node would still use the name.
	_ = run(ctx, "ip", "link", "delete", n.link)
	err := run(ctx, "ip", "link", "add", n.link, "type", "veth",
		"peer", "name", "eth0", "address", c.mac(n.number), "netns", fmt.Sprint(pid))
	if err != nil {
		return err
	}
	if err := run(ctx, "ip", "link", "set", n.link, "master", c.bridge(), "up"); err != nil {
		return err
	}
	lines := []string{
		fmt.Sprintf("address add %s/24 dev eth0", n.address),
		"link set eth0 up",
		fmt.Sprintf("route add default via %s", c.state.Address),
	}
	for _, other := range c.nodes() {
		if other.number != n.number {
			lines = append(lines, fmt.Sprintf("route add %s via %s", other.podRange, other.address))
		}
	}
	cmd := exec.CommandContext(ctx, "nsenter", "-t", fmt.Sprint(pid), "-n", "ip", "-batch", "-")
	cmd.Stdin = strings.NewReader(strings.Join(lines, "\n") + "\n")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("addresses and routes of %s: %w: %s", n.name, err, out)
	}
	return nil
}

// Cut disconnects a node from the network. Its processes continue to run.
func (c *Cluster) Cut(name string) error { return c.setLink(name, "down") }

// Heal undoes Cut.
func (c *Cluster) Heal(name string) error { return c.setLink(name, "up") }

// BlockKubelet drops packets to the port of a node's kubelet. The API server cannot run commands on the
// node, and its kubelet still reports Ready.
func (c *Cluster) BlockKubelet(name string) error { return c.dropToKubelet(name, "-I") }

// UnblockKubelet undoes BlockKubelet.
func (c *Cluster) UnblockKubelet(name string) error { return c.dropToKubelet(name, "-D") }

func (c *Cluster) dropToKubelet(name, change string) error {
	return c.drop(name, "filter", change, "INPUT", "-p", "tcp", "--dport", "10250")
}

// BlockAPIServer drops packets of a node and its pods to the API server. Their other connections continue.
func (c *Cluster) BlockAPIServer(name string) error { return c.dropToAPIServer(name, "-I") }

// UnblockAPIServer undoes BlockAPIServer.
func (c *Cluster) UnblockAPIServer(name string) error { return c.dropToAPIServer(name, "-D") }

func (c *Cluster) dropToAPIServer(name, change string) error {
	// Packets of the node and of its pods have the address behind the Service here.
	return c.drop(name, "mangle", change, "POSTROUTING", "-d", c.state.Address, "-p", "tcp", "--dport", fmt.Sprint(c.state.Ports["apiserver"]))
}

// drop adds (-I) or deletes (-D) a rule in the network namespace of a node that drops packets.
func (c *Cluster) drop(name, table, change, chain string, match ...string) error {
	n, err := c.node(name)
	if err != nil {
		return err
	}
	args := []string{"nsenter", "-t", fmt.Sprint(c.process(n.name).PID), "-n", "iptables", "-w", "-t", table, change, chain}
	return run(context.Background(), slices.Concat(args, match, []string{"-j", "DROP"})...)
}

func (c *Cluster) setLink(name, state string) error {
	n, err := c.node(name)
	if err != nil {
		return err
	}
	return run(context.Background(), "ip", "link", "set", n.link, state)
}

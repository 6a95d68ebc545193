package rabbitmq

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/stateful-operator/stateful-operator/agent/driver"
	"github.com/stateful-operator/stateful-operator/agent/membership"
	"github.com/stateful-operator/stateful-operator/agent/processes"
)

// ctl is the tool of RabbitMQ.
const ctl = "rabbitmqctl"

// run runs the tool for a node, and returns its output.
func (s *Server) run(ctx context.Context, node string, args ...string) (string, error) {
	path, err := driver.FindProgram(ctl)
	if err != nil {
		return "", err
	}
	if err := s.keepCookie(); err != nil {
		return "", err
	}
	if err := startPortMapper(ctx); err != nil {
		return "", err
	}
	cmd := processes.Tool(ctx, path, append([]string{"--quiet", "--node", node}, args...)...)
	processes.WithItsChildren(cmd)
	cmd.Env = append(append(cmd.Env, s.environment()...), toolTag)
	out, err := processes.Output(cmd)
	if err != nil {
		return "", errors.New(cause(err.Error()))
	}
	return out, nil
}

// cause returns the error of a tool without general advice.
func cause(text string) string {
	text, _, _ = strings.Cut(text, "Please see diagnostics information")
	return strings.TrimSpace(text)
}

// endTools kills tools of commands that have ended. They would continue with what they do.
func endTools() error {
	list := func() ([]processes.Process, error) { return processes.ListTagged(toolTag) }
	if !processes.Kill(killLimit, list) {
		return errors.New("a tool of an earlier command does not end")
	}
	return nil
}

// answer precedes the lines that an expression prints, because Erlang can print warnings.
const answer = "answer: "

// evaluate evaluates an expression in a node. It returns the lines that the expression prints after answer.
func (s *Server) evaluate(ctx context.Context, node, expression string) ([]string, error) {
	out, err := s.run(ctx, node, "eval", expression)
	return answersIn(out), err
}

func answersIn(out string) (lines []string) {
	for line := range strings.Lines(out) {
		if text, found := strings.CutPrefix(line, answer); found {
			lines = append(lines, strings.TrimSpace(text))
		}
	}
	return lines
}

// keepCookie writes the cookie for tools, if no server was started in this pod. A running server keeps the
// cookie with which it was started.
func (s *Server) keepCookie() error {
	cookie, err := s.cookie()
	if err == nil {
		_, err = s.Private.Once(cookieFile, []byte(cookie))
	}
	return err
}

// cluster is a cluster as one of its members sees it.
type cluster struct {
	ID string
	// Host is the member that was asked.
	Host  string
	Nodes []string
	// Current is true if a majority has confirmed that the list is not an old one.
	Current bool
}

// lists reports whether a node is a member.
func (c cluster) lists(node string) bool { return slices.Contains(c.Nodes, node) }

// node returns the node that was asked.
func (c cluster) node() string { return nodeOf(c.Host) }

// inspection is an expression that prints the mark of a member, whether its list of nodes is current, and the
// list. A fence returns when the member has all changes that were made before. Without a leader it does not
// end in its time.
const inspection = `begin
  {ok, Mark} = file:read_file(%q),
  {Self, Ref} = {self(), make_ref()},
  spawn(fun() -> Self ! {Ref, catch rabbit_khepri:fence(5000)} end),
  Fence = case ra_leaderboard:lookup_leader(rabbitmq_metadata) of
    undefined -> failed;
    _ -> receive {Ref, Result} -> Result after 5000 -> failed end
  end,
  io:format("answer: ~ts~nanswer: ~p~n", [Mark, Fence]),
  [io:format("answer: ~ts~n", [N]) || N <- rabbit_khepri:locally_known_nodes()],
  ok
end.`

// inspectLimit is the time in which a member must answer.
const inspectLimit = 20 * time.Second

// inspect asks a member for its cluster.
func (s *Server) inspect(ctx context.Context, host string) (cluster, error) {
	ctx, cancel := context.WithTimeout(ctx, inspectLimit)
	defer cancel()
	lines, err := s.evaluate(ctx, nodeOf(host), fmt.Sprintf(inspection, s.record().Path()))
	if err != nil {
		return cluster{}, err
	}
	return parseInspection(lines, host)
}

// parseInspection parses the answer of a member.
func parseInspection(lines []string, host string) (cluster, error) {
	if len(lines) < 2 {
		return cluster{}, fmt.Errorf("unexpected answer: %q", lines)
	}
	var m membership.Mark
	if err := json.Unmarshal([]byte(lines[0]), &m); err != nil {
		return cluster{}, fmt.Errorf("unexpected answer: %q", lines)
	}
	c := cluster{ID: m.Cluster, Host: host, Nodes: lines[2:], Current: lines[1] == "ok"}
	if !m.IsMember() || !c.lists(c.node()) {
		return cluster{}, fmt.Errorf("it is %q, and not in a cluster", m.State)
	}
	return c, nil
}

// findCluster returns the cluster of the first of these members that has a majority, or otherwise of the first
// that knows its cluster.
func (s *Server) findCluster(ctx context.Context, hosts []string) (best cluster, err error) {
	err = driver.ErrNoOther
	for _, host := range hosts {
		found, inspectErr := s.inspect(ctx, host)
		switch {
		case inspectErr == nil && found.Current:
			return found, nil
		case inspectErr == nil && best.ID == "":
			best = found
		case inspectErr != nil:
			err = fmt.Errorf("%s: %w", host, inspectErr)
		}
	}
	if best.ID != "" {
		return best, nil
	}
	return best, err
}

// errNoMajority is the error of a change of the members without a majority.
var errNoMajority = errors.New("the other members have no majority")

// Versions whose metadata is in a Raft group.
const oldestMajor, oldestMinor = 4, 2

var versionText = regexp.MustCompile(`(?m)^(\d+)\.(\d+)\.`)

// program returns the path of the server in the image.
func (s *Server) program(ctx context.Context) (string, error) {
	path, err := driver.FindProgram("rabbitmq-server")
	if err != nil {
		return "", err
	}
	if s.checked { // it takes a second of CPU
		return path, nil
	}
	out, err := s.run(ctx, s.node(), "version")
	if err == nil {
		err = checkVersion(out)
	}
	s.checked = err == nil
	return path, err
}

// checkVersion returns an error if a version is too old.
func checkVersion(out string) error {
	match := versionText.FindStringSubmatch(out)
	if match == nil {
		return driver.Errorf(driver.NotConfigured, "%s version prints %q", ctl, out)
	}
	var major, minor int
	if _, err := fmt.Sscan(match[1], &major); err != nil {
		return err
	}
	if _, err := fmt.Sscan(match[2], &minor); err != nil {
		return err
	}
	oldMinor := major == oldestMajor && minor < oldestMinor
	if major < oldestMajor || oldMinor {
		return driver.Errorf(driver.NotConfigured, "the image has RabbitMQ %d.%d, and the min version is %d.%d", major, minor, oldestMajor, oldestMinor)
	}
	return nil
}

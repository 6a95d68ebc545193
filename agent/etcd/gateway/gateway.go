// Package gateway is a client for the JSON gateway of etcd, which has the same methods as its gRPC API.
// It needs no library of etcd, and works with all versions from 3.4 on.
package gateway

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

// root is the user with all rights.
const root = "root"

// Client sends requests to one member.
type Client struct {
	base, password, token string
	http                  *http.Client
}

// New returns a client of a member: HOST:PORT. It authenticates as root if the cluster requires it.
func New(address, password string) *Client {
	return &Client{base: "http://" + address, password: password, http: &http.Client{Timeout: requestLimit, Transport: &http.Transport{}}}
}

// Close closes the connection. The next request opens another one.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// requestLimit is the time for one request. A member without a majority answers after its own timeout,
// which is longer.
const requestLimit = 5 * time.Second

// Error is the message of an error that a member returned.
type Error string

func (e Error) Error() string { return string(e) }

// Is reports whether an error was returned by a member, with a message that has this part.
func Is(err error, part string) bool {
	var returned Error
	return errors.As(err, &returned) && strings.Contains(string(returned), part)
}

// maxBody is larger than any response of the methods that are used here.
const maxBody = 1 << 20

// call sends a request, and decodes the response into out.
func (c *Client) call(ctx context.Context, method string, in, out any) error {
	body, err := json.Marshal(in)
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, c.base+"/v3/"+method, bytes.NewReader(body))
	if err != nil {
		return err
	}
	if c.token != "" {
		request.Header.Set("Authorization", c.token)
	}
	response, err := c.http.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, maxBody))
	if err != nil {
		return err
	}
	if response.StatusCode == http.StatusOK {
		return json.Unmarshal(text, out)
	}
	var failure struct{ Error, Message string }
	if err := json.Unmarshal(text, &failure); err != nil || failure.Error+failure.Message == "" {
		return fmt.Errorf("%s returned %s", method, response.Status)
	}
	return Error(cmp.Or(failure.Message, failure.Error))
}

// do is call with authentication.
func (c *Client) do(ctx context.Context, method string, in, out any) error {
	if c.token == "" {
		if err := c.authenticate(ctx); err != nil {
			return err
		}
	}
	err := c.call(ctx, method, in, out)
	if Is(err, "invalid auth token") {
		c.token = ""
	}
	return err
}

// authenticate gets a token, unless authentication is not enabled.
func (c *Client) authenticate(ctx context.Context) error {
	var found struct{ Token string }
	err := c.call(ctx, "auth/authenticate", map[string]string{"name": root, "password": c.password}, &found)
	if Is(err, "authentication is not enabled") {
		return nil
	}
	c.token = found.Token
	return err
}

// EnableAuth creates the user root in a new cluster, and requires authentication of all clients.
func (c *Client) EnableAuth(ctx context.Context) error {
	var none struct{}
	for _, step := range []struct {
		method string
		in     map[string]string
	}{
		{"auth/role/add", map[string]string{"name": root}},
		{"auth/user/add", map[string]string{"name": root, "password": c.password}},
		{"auth/user/grant", map[string]string{"user": root, "role": root}},
		{"auth/enable", nil},
	} {
		if step.in == nil {
			step.in = map[string]string{}
		}
		if err := c.call(ctx, step.method, step.in, &none); err != nil && !Is(err, "role name already exists") {
			return err
		}
	}
	return nil
}

// Member is a member of the cluster. Its name is "" until it was started.
type Member struct {
	ID         string
	Name       string
	PeerURLs   []string
	ClientURLs []string
	IsLearner  bool
}

// Cluster is a cluster with its members.
type Cluster struct {
	ID      string
	Members []Member
}

// Member returns the member with the ID. It returns nil if there is none.
func (c Cluster) Member(id string) *Member {
	for i := range c.Members {
		if c.Members[i].ID == id {
			return &c.Members[i]
		}
	}
	return nil
}

type header struct {
	ClusterID string `json:"cluster_id"`
	MemberID  string `json:"member_id"`
}

// Members returns the members, as a majority has agreed on them.
func (c *Client) Members(ctx context.Context) (Cluster, error) {
	// The list is that of the asked member. This read waits until the member has all that is committed.
	if _, err := c.Get(ctx, "\x00"); err != nil {
		return Cluster{}, err
	}
	var found struct {
		Header  header
		Members []Member
	}
	err := c.do(ctx, "cluster/member/list", map[string]string{}, &found)
	return Cluster{ID: found.Header.ClusterID, Members: found.Members}, err
}

// State is the state of a member, by its own report. The fields are IDs.
type State struct{ Member, Cluster, Leader string }

// State returns the state of the asked member. The leader is "" or "0" if there is none.
func (c *Client) State(ctx context.Context) (State, error) {
	var found struct {
		Header header
		Leader string
	}
	err := c.do(ctx, "maintenance/status", map[string]string{}, &found)
	return State{Member: found.Header.MemberID, Cluster: found.Header.ClusterID, Leader: found.Leader}, err
}

// AddLearner adds a member that receives all data and does not vote. It returns the new list.
func (c *Client) AddLearner(ctx context.Context, peerURL string) (added Member, all []Member, err error) {
	var found struct {
		Member  Member
		Members []Member
	}
	err = c.do(ctx, "cluster/member/add", map[string]any{"peerURLs": []string{peerURL}, "isLearner": true}, &found)
	return found.Member, found.Members, err
}

// Promote makes a learner that has all data a member that votes. Only the leader does that: other members
// forward the request without its authentication.
func (c *Client) Promote(ctx context.Context, id string) error {
	var none struct{}
	return c.do(ctx, "cluster/member/promote", map[string]string{"ID": id}, &none)
}

// Remove removes a member.
func (c *Client) Remove(ctx context.Context, id string) error {
	var none struct{}
	return c.do(ctx, "cluster/member/remove", map[string]string{"ID": id}, &none)
}

// Put writes a key.
func (c *Client) Put(ctx context.Context, key, value string) error {
	var none struct{}
	return c.do(ctx, "kv/put", map[string][]byte{"key": []byte(key), "value": []byte(value)}, &none)
}

// Get returns the value of a key, as a majority has agreed on it. It is "" if there is none.
func (c *Client) Get(ctx context.Context, key string) (string, error) {
	var found struct {
		Kvs []struct{ Value string }
	}
	if err := c.do(ctx, "kv/range", map[string]any{"key": []byte(key)}, &found); err != nil || len(found.Kvs) == 0 {
		return "", err
	}
	value, err := base64.StdEncoding.DecodeString(found.Kvs[0].Value)
	return string(value), err
}

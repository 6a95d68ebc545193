package rabbitmq

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/stateful-operator/stateful-operator/agent/driver"
	"github.com/stateful-operator/stateful-operator/agent/membership"
)

// Primary starts a member while others run. If the cluster does not list this member, or the data of it was
// lost, the member joins as a new one.
func (s *Server) Primary(ctx context.Context, primaries []string) error {
	m, runs, err := s.prepare(ctx)
	if err != nil || runs {
		return err
	}
	others := s.Others(primaries)
	to, err := s.findCluster(ctx, others)
	if err == nil {
		err = s.record().CheckCluster(m, to.ID, s.Name)
		if err != nil {
			return err
		}
	}
	forgotten := to.Current && !to.lists(s.node())
	switch {
	case m.IsMember() && to.Current && !forgotten:
		return s.launch(ctx)
	case m.IsMember() && !forgotten:
		s.log.Printf("starts with its own data, because no other member has a majority: %v", err)
		return s.begin(ctx, allClients) // the next start may be the one that brings the majority
	case err != nil:
		return err
	case to.Current:
		return s.join(ctx, to)
	case m.State == membership.Joining && to.lists(s.node()):
		return s.finishJoin(ctx, m, to, len(others) == 1)
	}
	return errNoMajority
}

// finishJoin completes or undoes a join whose command has died after the cluster was changed, and without which
// the cluster has no majority. alone is set if no other member runs.
func (s *Server) finishJoin(ctx context.Context, m membership.Mark, to cluster, alone bool) error {
	found, err := s.hasData()
	if err != nil {
		return err
	}
	if found {
		if joined, err := s.resume(ctx, to); err != nil || joined {
			return err
		}
	}
	if !alone || m.Only != to.Host {
		return errNoMajority
	}
	if to, err = s.undoAddition(ctx, to); err != nil {
		return err
	}
	return s.join(ctx, to)
}

// resumeLimit is the time in which a member that has joined finds the others.
const resumeLimit = 60 * time.Second

// resume starts the copy of a member that may have joined, and reports whether it has: the cluster can also list it
// because of a request that took effect late.
func (s *Server) resume(ctx context.Context, to cluster) (joined bool, err error) {
	if err := s.begin(ctx, onlyThisPod); err != nil {
		return false, err
	}
	limited, cancel := context.WithTimeout(ctx, resumeLimit)
	defer cancel()
	const others = `[io:format("answer: ~ts~n", [N]) || N <- rabbit_khepri:locally_known_nodes()], ok.`
	err = driver.WaitUntil(limited, s.running, func() error {
		nodes, err := s.evaluate(limited, s.node(), others)
		switch {
		case err != nil:
			return err
		case len(nodes) > 1:
			joined = true
			return nil
		case len(nodes) == 1 && s.Ready(limited) == nil:
			return nil // it is the only member of its cluster
		}
		return errors.New("the member does not find the other ones")
	})
	if err != nil || !joined {
		return false, errors.Join(err, s.kill())
	}
	// The tables are saved when the server stops.
	if err := s.Stop(ctx); err != nil {
		return false, err
	}
	if err := s.recordMember(to.ID); err != nil {
		return false, err
	}
	return true, s.launch(ctx)
}

// shrink is an expression that makes a member the only one of its cluster, if it lists two members.
const shrink = `begin
  Both = lists:sort([node(), list_to_atom(%q)]),
  Both = lists:sort(rabbit_khepri:locally_known_nodes()),
  ok = rabbit_khepri:force_shrink_member_to_current_member()
end.`

// undoAddition removes this member from a cluster of two without its vote, and returns the cluster. The other
// member was the only one with a vote when this one began to join, and no other member runs. So its copy has all
// data: this member was never on record, and nothing was committed without the other one.
func (s *Server) undoAddition(ctx context.Context, to cluster) (cluster, error) {
	s.log.Printf("removes this member from the list of %s: its copy was lost in the join, and %s has no majority without it", to.Host, to.Host)
	if _, err := s.evaluate(ctx, to.node(), fmt.Sprintf(shrink, s.node())); err != nil {
		return to, fmt.Errorf("remove this member from a cluster of two: %w", err)
	}
	return s.inspectCurrent(ctx, to.Host)
}

// inspectCurrent is inspect, but returns an error if no majority has confirmed the answer.
func (s *Server) inspectCurrent(ctx context.Context, host string) (cluster, error) {
	found, err := s.inspect(ctx, host)
	if err == nil && !found.Current {
		err = errNoMajority
	}
	return found, err
}

// join adds this member to the cluster, without its former data.
func (s *Server) join(ctx context.Context, to cluster) error {
	mark := membership.Mark{State: membership.Joining, Cluster: to.ID, Member: s.node()}
	if err := s.discardAs(mark); err != nil {
		return err
	}
	without, err := s.forget(ctx, to)
	if err == nil && len(without.Nodes) == 1 {
		mark.Only = to.Host
		err = s.record().Write(mark)
	}
	if err != nil {
		return err
	}
	if err := s.beginEmpty(ctx); err != nil {
		return err
	}
	err = s.addTo(ctx, to)
	if err == nil {
		err = s.complete(ctx, to.ID)
	}
	return s.undoStart(err)
}

// discardAs discards the data, and records the state of the copy. If that is interrupted, the state is that
// of a member without data, or of an empty copy.
func (s *Server) discardAs(m membership.Mark) error {
	if err := s.discard(); err != nil {
		return err
	}
	return s.record().Write(m)
}

// addTo adds the running server, which has no data, to a cluster.
func (s *Server) addTo(ctx context.Context, to cluster) error {
	if _, err := s.run(ctx, s.node(), "stop_app"); err != nil {
		return err
	}
	if _, err := s.run(ctx, s.node(), "join_cluster", to.node()); err != nil {
		return fmt.Errorf("join the cluster: %w", err)
	}
	if _, err := s.evaluate(ctx, s.node(), saveTables); err != nil {
		return fmt.Errorf("save the tables: %w", err)
	}
	_, err := s.confirm(ctx, to, true)
	return err
}

// saveTables is an expression that saves the tables of the server to disk. In one of them Raft registers the
// copy of the metadata, and saves it half a second later. A member that is killed before that, and is on
// record as a member, would start as the only member of a new cluster.
const saveTables = "lists:foreach(fun(Table) -> ok = dets:sync(Table) end, dets:all())."

// confirm returns the cluster, or an error if no majority has confirmed that this member is listed, or that it is
// not. The tools return when the leader has the change in its log.
func (s *Server) confirm(ctx context.Context, to cluster, listed bool) (cluster, error) {
	found, err := s.inspectCurrent(ctx, to.Host)
	if err == nil && found.lists(s.node()) != listed {
		err = fmt.Errorf("after the change of the members, the members are %s", strings.Join(found.Nodes, ", "))
	}
	return found, err
}

// forget removes the replicas on this node, and this node, from a cluster, and returns the cluster without it. The
// server must not serve clients.
func (s *Server) forget(ctx context.Context, from cluster) (cluster, error) {
	// forget_cluster_node also removes the replicas, but it removes the node if some remain.
	if err := s.removeReplicas(ctx, from); err != nil {
		return from, err
	}
	if from.lists(s.node()) {
		_, err := s.run(ctx, from.node(), "forget_cluster_node", s.node())
		if err != nil && !strings.Contains(err.Error(), "not in the cluster") {
			return from, fmt.Errorf("remove this member from the cluster: %w", err)
		}
	}
	return s.confirm(ctx, from, false)
}

// removal is an expression that removes the replicas of queues and streams on a node, and prints the names of
// those that remain. The entry of a stream changes some time after its replica was removed.
const removal = `begin
  Node = list_to_atom(%q),
  _ = rabbit_quorum_queue:shrink_all(Node),
  _ = rabbit_stream_queue:delete_all_replicas(Node),
  case rabbit_stream_coordinator:forget_node(Node) of
    ok -> ok;
    Error -> io:format("answer: the coordinator of streams (~p)~n", [Error])
  end,
  Nodes = fun(Q) ->
    case amqqueue:get_type_state(Q) of
      #{nodes := L} when is_list(L) -> L;
      #{nodes := M} when is_map(M) -> maps:keys(M);
      _ -> []
    end
  end,
  Remain = fun() -> [Q || Q <- rabbit_amqqueue:list(), lists:member(Node, Nodes(Q))] end,
  Wait = fun W(0) -> Remain(); W(N) -> case Remain() of [] -> []; _ -> timer:sleep(200), W(N - 1) end end,
  [io:format("answer: ~ts~n", [rabbit_misc:rs(amqqueue:get_name(Q))]) || Q <- Wait(50)],
  ok
end.`

// removeReplicas removes the replicas of queues and streams on this node.
func (s *Server) removeReplicas(ctx context.Context, from cluster) error {
	remaining, err := s.evaluate(ctx, from.node(), fmt.Sprintf(removal, s.node()))
	if err == nil && len(remaining) > 0 {
		err = fmt.Errorf("these could not be removed, for example because it is the only one: %s", strings.Join(remaining, ", "))
	}
	if err != nil {
		return fmt.Errorf("remove the replicas on this member: %w", err)
	}
	return nil
}

// Leave removes this member from the cluster, and stops it.
func (s *Server) Leave(ctx context.Context, primaries []string) error {
	m, err := s.record().Read()
	if err == nil {
		err = endTools()
	}
	if err != nil {
		return err
	}
	from, err := s.findCluster(ctx, s.Others(primaries))
	switch {
	case err != nil:
		return err
	case !from.Current:
		return errNoMajority
	}
	if from.lists(s.node()) {
		if err := s.leave(ctx, m, from); err != nil {
			return err
		}
	}
	if m.State != "" {
		left := membership.Mark{State: membership.Left, Cluster: from.ID, Member: s.node()}
		if err := s.record().Write(left); err != nil {
			return err
		}
	}
	return s.Stop(ctx)
}

// leave removes this member from a cluster. With its data it must run, because the cluster may need its vote.
func (s *Server) leave(ctx context.Context, m membership.Mark, from cluster) error {
	if !m.IsMember() {
		_, err := s.forget(ctx, from)
		return err
	}
	// An earlier call can have stopped it for clients.
	if s.Ready(ctx) != nil {
		if err := errors.Join(s.Stop(ctx), s.launch(ctx)); err != nil {
			return err
		}
		if err := s.Ready(ctx); err != nil {
			return err
		}
	}
	if err := s.checkMessages(ctx); err != nil {
		return err
	}
	// A member that is drained gets no clients and no new replicas.
	if err := s.drain(ctx, true); err != nil {
		return err
	}
	if err := errors.Join(s.removeReplicas(ctx, from), s.checkMessages(ctx)); err != nil {
		return errors.Join(err, s.drain(ctx, false))
	}
	if _, err := s.run(ctx, s.node(), "stop_app"); err != nil {
		return err
	}
	_, err := s.forget(ctx, from)
	return err
}

// drain closes the connections and the ports of this member, or opens the ports again. RabbitMQ's own drain would
// also stop the replicas, and a queue with two needs both for the removal of one.
func (s *Server) drain(ctx context.Context, drained bool) error {
	expression := "true = rabbit_maintenance:unmark_as_being_drained(), ok = rabbit_maintenance:resume_all_client_listeners()."
	if drained {
		expression = "true = rabbit_maintenance:mark_as_being_drained(), ok = rabbit_maintenance:suspend_all_client_listeners(), " +
			"{ok, _} = rabbit_maintenance:close_all_client_connections()."
	}
	_, err := s.evaluate(ctx, s.node(), expression)
	return err
}

// messages is an expression that prints the classic queues of a node whose messages no other member has, or
// whose number of messages is unknown.
const messages = `begin
  Empty = fun(Q) -> (catch rabbit_amqqueue:info(Q, [messages])) =:= [{messages, 0}] end,
  [io:format("answer: ~ts~n", [rabbit_misc:rs(amqqueue:get_name(Q))]) || Q <- rabbit_amqqueue:list(),
    amqqueue:get_type(Q) =:= rabbit_classic_queue, amqqueue:is_durable(Q), amqqueue:get_exclusive_owner(Q) =:= none,
    amqqueue:qnode(Q) =:= node(), not Empty(Q)],
  ok
end.`

// checkMessages returns an error if classic queues have messages that no other member has.
func (s *Server) checkMessages(ctx context.Context) error {
	found, err := s.evaluate(ctx, s.node(), messages)
	if err == nil && len(found) > 0 {
		err = fmt.Errorf("these classic queues have messages, and are only in this member: consume the messages, or delete the queues: %s", strings.Join(found, ", "))
	}
	return err
}

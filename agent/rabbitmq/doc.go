// Package rabbitmq runs RabbitMQ 4.2 and later as a ReplicatedStatefulSet, in the unmodified upstream image.
//
// # Roles
//
// A Raft group of all members has the users, queues and bindings, and each quorum queue is another Raft
// group. Clients use any member. So all members are primaries of the set, and a member without a majority
// is not failed.
//
// # Sequence
//
// A majority has each acknowledged write, and a group starts with the newest copy of those that have a
// majority, whatever the order in which the members start. See package membership.
//
// # Members
//
// A member joins with an empty copy. If the cluster lists an earlier one of the same name, that is forgotten
// before: a voter that has lost its log could vote for a member without acknowledged writes. Command leave
// removes a member, after its replicas of queues were removed.
package rabbitmq

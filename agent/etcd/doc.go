// Package etcd runs etcd 3.4 to 3.6 as a ReplicatedStatefulSet, in the unmodified upstream image.
//
// # Roles
//
// etcd elects its leader itself, and its clients use any member. So all members are primaries of the
// set, and a member without a majority is not failed.
//
// # Sequence
//
// A majority of the members has each acknowledged write, and etcd starts with the newest copy of those
// that have a majority, whatever the order in which they start. So the operator must distinguish only
// copies that may be those of voting members, which have number 1, from those that are empty, that have not
// joined, or that have left: they have number 0. The file member.json, next to the data, has
// that state.
//
// # Members
//
// A member joins as a learner, which does not vote, so that a member that does not start costs no
// majority. It is promoted when it has all data. Command leave removes a member.
package etcd

// Package galera runs MariaDB 10.6 to 11.8 with Galera as a ReplicatedStatefulSet, in the unmodified
// upstream image.
//
// # Roles
//
// Each member of a Galera cluster accepts writes while it is connected to a majority. So all members are
// primaries of the set. A member without a majority is failed: when all have failed, the newest copy begins
// a new cluster.
//
// # Sequence
//
// A transaction has a number in the history of the cluster. The member that has acknowledged it has it on
// disk, and the others apply it later. So the copy with the highest number has all acknowledged
// transactions. Each seed begins a new generation, which is in the high bits, because an administrator can
// seed a copy that is not the newest one. The generation is the name of the cluster, so a member with
// transactions that the cluster does not have cannot join by mistake. The file galera.json, next to
// the data, has the generation of the copy.
//
// # Files of MariaDB
//
// grastate.dat has the position of a copy whose server was stopped. After a crash, it is recovered from the
// log of InnoDB. While a member receives a full copy, grastate.dat has no position, and the copy has
// number 0.
package galera

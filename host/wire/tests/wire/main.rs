//! The wire over real sockets: what goes through, what is refused and how that reads, and what a hostile peer comes to.

mod calls;
mod certificates;
mod cluster;
mod decoders;
mod hostile;
mod services;
mod shutdown;
mod tls;
mod uploads;

mod crash;
mod model;

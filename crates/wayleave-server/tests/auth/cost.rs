//! What it costs to know a caller.

use std::time::Instant;

use crate::house::House;

const TIMES: u32 = 20_000;

/// Measured with `cargo test --release -- --ignored --nocapture`.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "a measurement"]
async fn knowing_a_caller_takes_microseconds() {
    let house = House::new().await;
    let token = house.reader().await;
    house.credentials.caller(&token).await.unwrap();
    let began = Instant::now();
    for _ in 0..TIMES {
        house.credentials.caller(&token).await.unwrap();
    }
    println!("{:?} each", began.elapsed() / TIMES);
}

//! PostgreSQL.
use std::sync::Arc;

use kernel::{Result, Secret};

use crate::{
    Arg, FromRow, Row,
    db::{Context, Lane, Limits},
    fault::{self, Fault},
    job::Job,
    row::Value,
    tx::ColumnType,
    wake::Wake,
};

pub(crate) struct Engine;
pub(crate) struct Connection;

impl Engine {
    pub(crate) async fn open(_: Secret<String>, _: &Arc<Context>, _: &Limits, _: Wake) -> Result<Self> {
        Err(fault::closed())
    }
    pub(crate) fn submit(&self, _: Lane, _: Box<dyn Job>) -> Result<()> {
        Err(fault::closed())
    }
    pub(crate) async fn get_one<T: FromRow>(&self, _: &'static str, _: &[Arg<'_>]) -> Result<Option<T>> {
        Err(fault::closed())
    }
    pub(crate) async fn exec_one(&self, _: &'static str, _: &[Arg<'_>]) -> Result<u64> {
        Err(fault::closed())
    }
    pub(crate) fn notify(&self) {}
    pub(crate) async fn close(&self) {}
}

impl Connection {
    pub(crate) fn exec(&mut self, _: &'static str, _: &[Arg<'_>]) -> Result<u64, Fault> {
        Err(Fault::doomed(fault::closed()))
    }
    pub(crate) fn query(
        &mut self,
        _: &'static str,
        _: &[Arg<'_>],
        _: &mut dyn FnMut(&Row<'_>) -> Result<()>,
    ) -> Result<(), Fault> {
        Err(Fault::doomed(fault::closed()))
    }
    pub(crate) fn insert_all(
        &mut self,
        _: &'static str,
        _: &[(&'static str, ColumnType)],
        _: &[Vec<Arg<'_>>],
        _: &mut dyn FnMut(&Row<'_>) -> Result<()>,
    ) -> Result<(), Fault> {
        Err(Fault::doomed(fault::closed()))
    }
    pub(crate) fn lock(&mut self, _: &str) -> Result<(), Fault> {
        Err(Fault::doomed(fault::closed()))
    }
    pub(crate) fn script(&mut self, _: &str) -> Result<(), Fault> {
        Err(Fault::doomed(fault::closed()))
    }
}

pub(crate) fn value<'a, I>(_: &'a tokio_postgres::Row, _: I) -> Result<Value<'a>>
where
    I: tokio_postgres::row::RowIndex + std::fmt::Display,
{
    Err(fault::closed())
}
